// SPDX-License-Identifier: MIT
#include "harness/compare/suppressions.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "harness/defect/blame.h"
#include "harness/defect/defect_fingerprint.h"
#include "harness/process/files.h"
#include "harness/process/toml_keys.h"
#include "reports/defect_words.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace cuaudit::harness {
namespace {

using Entry = Suppressions::Entry;

constexpr char kToday[] = "CUAUDIT_TODAY";

struct Key {
  std::string_view name;
  std::string Entry::*member;
};
constexpr std::array<Key, 6> kPatterns = {{{"rule", &Entry::rule},
                                           {"kind", &Entry::kind},
                                           {"module", &Entry::module},
                                           {"acquired_in", &Entry::acquired_in},
                                           {"failing_call", &Entry::failing_call},
                                           {"blamed", &Entry::blamed}}};
constexpr std::array<Key, 2> kTexts = {{{"reason", &Entry::reason}, {"owner", &Entry::owner}}};

struct Error {
  std::uint32_t line;
  std::string expected;
};

std::uint32_t LineOf(const toml::node& node) { return node.source().begin.line; }

// The text of a string key, which must not be empty when it is there.
bool ReadText(const toml::table& table, std::string_view key, std::string* text, Error* error) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return true;
  const std::optional<std::string> value = node->is_string() ? node->value<std::string>() : std::nullopt;
  if (!value || value->empty()) {
    *error = {LineOf(*node), std::string(key) + ": expected a string that is not empty"};
    return false;
  }
  *text = *value;
  return true;
}

// Strings and TOML's own dates are both days.
bool ReadDay(const toml::table& table, std::string* until, Error* error) {
  const toml::node* const node = table.get("until");
  if (node == nullptr) return true;
  if (const auto* const date = node->as_date()) {
    char text[16];
    std::snprintf(text, sizeof(text), "%04u-%02u-%02u", static_cast<unsigned>(date->get().year), static_cast<unsigned>(date->get().month),
                  static_cast<unsigned>(date->get().day));
    *until = text;
  } else if (node->is_string()) {
    *until = node->value_or(std::string());
  }
  const std::string last = LastDay(Today());
  if (IsDay(*until) && *until <= last) return true;
  *error = {LineOf(*node), IsDay(*until) ? "until: expected a day at most two years ahead, up to " + last
                                         : std::string("until: expected a day such as 2027-03-31")};
  return false;
}

bool ReadEntry(const toml::table& table, Entry* entry, Error* error) {
  const std::uint32_t line = LineOf(table);
  for (const auto& [key, value] : table) {
    const std::string_view name = key.str();
    const auto is = [name](const Key& one) { return one.name == name; };
    const bool known = name == "fingerprint" || name == "until" || std::any_of(kPatterns.begin(), kPatterns.end(), is) ||
                       std::any_of(kTexts.begin(), kTexts.end(), is);
    if (known) continue;
    *error = {LineOf(value), "'" + std::string(key.str()) +
                                 "': expected fingerprint, rule, kind, module, acquired_in, failing_call, blamed, reason, owner or until"};
    return false;
  }
  if (!ReadText(table, "fingerprint", &entry->fingerprint, error)) return false;
  bool pattern = false;
  for (const Key& key : kPatterns) {
    if (!ReadText(table, key.name, &(entry->*key.member), error)) return false;
    pattern = pattern || !(entry->*key.member).empty();
  }
  for (const Key& key : kTexts) {
    if (!ReadText(table, key.name, &(entry->*key.member), error)) return false;
    if (!(entry->*key.member).empty()) continue;
    *error = {line, "expected " + std::string(key.name) + " in each suppression"};
    return false;
  }
  if (!ReadDay(table, &entry->until, error)) return false;
  if (entry->until.empty()) {
    *error = {line, "expected until, the last day on which the suppression holds, such as 2027-03-31"};
    return false;
  }
  if (entry->fingerprint.empty() == !pattern) {
    *error = {line, "expected a fingerprint, or patterns: rule, kind, module, acquired_in, failing_call, blamed"};
    return false;
  }
  return true;
}

// What the patterns of an entry are held against.
struct Traits {
  std::string fingerprint;
  std::vector<std::string> rules;
  std::vector<std::string> kinds;
  std::vector<std::string> calls;
  std::string module;
  std::string acquired_in;
  std::string blamed;
};

void AddOnce(std::string_view text, std::vector<std::string>* to) {
  if (!text.empty() && std::find(to->begin(), to->end(), text) == to->end()) to->emplace_back(text);
}

Traits TraitsOf(const report::Run& run, const report::Defect& defect) {
  Traits traits;
  const report::Finding& root = report::RootOf(run, defect);
  traits.fingerprint = defect.fingerprint;
  for (const report::Member& member : defect.members) {
    for (const std::size_t index : member.findings) {
      const report::Finding& finding = run.findings[index];
      AddOnce(words::Name(finding.rule), &traits.rules);
      AddOnce(finding.kind, &traits.kinds);
      if (finding.fault) AddOnce(finding.fault->call, &traits.calls);
      for (const report::Fault& fault : finding.then) AddOnce(fault.call, &traits.calls);
    }
  }
  const Stack& stack = root.acquired.stack.empty() ? root.where_stack : root.acquired.stack;
  const auto program = std::find_if(stack.begin(), stack.end(), IsProgram);
  if (program != stack.end()) {
    traits.module = program->module;
    traits.acquired_in = PlainName(program->function);
  }
  if (defect.blame) traits.blamed = PlainName(defect.blame->function.function);
  return traits;
}

bool FitsOne(const std::string& glob, const std::string& text) { return glob.empty() || Fits(glob, text); }

bool FitsAny(const std::string& glob, const std::vector<std::string>& texts) {
  return glob.empty() || std::any_of(texts.begin(), texts.end(), [&glob](const std::string& text) { return Fits(glob, text); });
}

// A defect may lose several kinds: an entry about one of them does not accept the others.
bool FitsAll(const std::string& glob, const std::vector<std::string>& texts) {
  if (glob.empty()) return true;
  return !texts.empty() && std::all_of(texts.begin(), texts.end(), [&glob](const std::string& text) { return Fits(glob, text); });
}

bool Accepts(const Entry& entry, const Traits& traits) {
  if (!entry.fingerprint.empty()) return entry.fingerprint == traits.fingerprint;
  return FitsAll(entry.rule, traits.rules) && FitsAll(entry.kind, traits.kinds) && FitsOne(entry.module, traits.module) &&
         FitsOne(entry.acquired_in, traits.acquired_in) && FitsAny(entry.failing_call, traits.calls) &&
         FitsOne(entry.blamed, traits.blamed);
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04X", static_cast<unsigned>(byte));
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string OnOneLine(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

// Trials that were excused because the program exits right after the fault, where nobody looked at the heap: they prove nothing.
void NoteUnseenAbandonment(report::Run* run) {
  const bool abandoned = std::any_of(run->notes.begin(), run->notes.end(),
                                     [](const report::Finding& note) { return note.rule == report::Rule::AbandonedAtExit; });
  const std::vector<std::string>& probes = run->host.probes;
  if (!abandoned || std::find(probes.begin(), probes.end(), "host_heap") != probes.end()) return;
  run->message.abandoned = report::Part{run->totals.verdicts[report::Verdict::AbandonedAtExit], run->totals.trials};
}

// What the outcome would be if the findings were not there. Sweeps note beside their findings what else is wrong.
report::Outcome WithoutFindings(report::Run* run) {
  if (run->mode == report::Mode::Sweep) NoteUnseenAbandonment(run);
  const report::Message& message = run->message;
  const bool proved = message.told.empty() && message.nothing == report::NothingPlanned::No && message.never_fired.trials.empty() &&
                      !message.abandoned && !message.coverage && !message.undecided;
  if (message.bad_end) return report::Outcome::Error;
  return proved ? report::Outcome::Clean : report::Outcome::NotExercised;
}

}  // namespace

bool IsDay(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at != 4 && at != 7 && (text[at] < '0' || text[at] > '9')) return false;
  }
  const auto number = [text](std::size_t at, std::size_t size) { return std::atoi(std::string(text.substr(at, size)).c_str()); };
  const int year = number(0, 4);
  const int month = number(5, 2);
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12) return false;
  const bool leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  const int day = number(8, 2);
  return day >= 1 && day <= kDays[static_cast<std::size_t>(month - 1)] + (leap ? 1 : 0);
}

bool Fits(std::string_view glob, std::string_view text) {
  std::size_t at = 0;
  std::size_t star = std::string_view::npos;  // in the glob
  std::size_t from = 0;                       // what the star has taken ends here
  std::size_t i = 0;
  while (i < text.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      from = i;
    } else if (at < glob.size() && (glob[at] == '?' || glob[at] == text[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++from;
    } else {
      return false;
    }
  }
  while (at < glob.size() && glob[at] == '*') ++at;
  return at == glob.size();
}

std::string Today() {
  const char* const fixed = std::getenv(kToday);
  if (fixed != nullptr && IsDay(fixed)) return fixed;
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  if (gmtime_r(&now, &utc) == nullptr) return "0000-00-00";
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d", &utc);
  return text;
}

Status CheckToday() {
  const char* const fixed = std::getenv(kToday);
  if (fixed == nullptr || IsDay(fixed)) return {};
  return {Exit::Usage, std::string(kToday) + ": '" + OnOneLine(fixed) + "': expected a day such as 2026-11-26"};
}

std::string LastDay(std::string_view today) {
  constexpr int kYears = 2;
  char year[16];
  std::snprintf(year, sizeof(year), "%04d", std::atoi(std::string(today.substr(0, 4)).c_str()) + kYears);
  return year + std::string(today.substr(4));
}

void ExpireSuppressed(std::string_view today, report::Run* run) {
  bool counts = false;
  for (report::Defect& defect : run->defects) {
    if (defect.suppressed) defect.suppressed->expired = std::string_view(defect.suppressed->until) < today;
    counts = counts || !report::IsSuppressed(defect);
  }
  if (counts && run->outcome == report::Outcome::Clean) run->outcome = report::Outcome::Findings;
}

Result<Suppressions> Suppressions::Read(const std::string& path) {
  if (const Status known = CheckToday(); !known.ok()) return known;
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20U;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Status(Exit::Usage, path + ": no such file");
  if (!std::filesystem::is_regular_file(path, error)) return Status(Exit::Usage, path + ": expected a regular file");
  if (std::filesystem::file_size(path, error) > kMostBytes) return Status(Exit::Usage, path + ": expected at most 1 MiB");
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return Status(Exit::Usage, text.status().message());
  return Parse(*text, path);
}

Result<Suppressions> Suppressions::Parse(std::string_view text, const std::string& name) {
  const auto wrong = [&name](std::uint32_t line, const std::string& expected) {
    return Status(Exit::Usage, name + ": line " + std::to_string(line) + ": " + expected);
  };
  if (const std::optional<std::uint32_t> line = LineOfDeepKey(text)) return wrong(*line, std::string(kExpectedDots));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return wrong(parsed.error().source().begin.line, "expected TOML: " + OnOneLine(parsed.error().description()));
  }
  Suppressions suppressions;
  for (const auto& [key, value] : parsed.table()) {
    if (key != "suppression") return wrong(LineOf(value), "'" + std::string(key.str()) + "': expected [[suppression]]");
    const toml::array* const list = value.as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::table)) return wrong(LineOf(value), "expected [[suppression]]");
    for (const toml::node& one : *list) {
      Entry entry;
      Error error;
      if (!ReadEntry(*one.as_table(), &entry, &error)) return wrong(error.line, error.expected);
      entry.place = name + ":" + std::to_string(LineOf(one));
      suppressions.entries_.push_back(std::move(entry));
    }
  }
  suppressions.used_.resize(suppressions.entries_.size());
  return suppressions;
}

void Suppressions::Apply(std::string_view today, report::Run* run) {
  bool all = !run->defects.empty();
  for (report::Defect& defect : run->defects) {
    const Traits traits = TraitsOf(*run, defect);
    const Entry* accepts = nullptr;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!Accepts(entries_[i], traits)) continue;
      used_[i] = true;
      if (accepts == nullptr || accepts->until < entries_[i].until) accepts = &entries_[i];
    }
    defect.suppressed.reset();
    if (accepts != nullptr) {
      defect.suppressed = {accepts->reason, accepts->owner, accepts->until, std::string_view(accepts->until) < today, accepts->place};
    }
    all = all && defect.suppressed && !defect.suppressed->expired;
  }
  if (all && (run->outcome == report::Outcome::Findings || run->outcome == report::Outcome::Left)) run->outcome = WithoutFindings(run);
}

std::vector<std::string> Suppressions::Unused() const {
  std::vector<std::string> places;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!used_[i]) places.push_back(entries_[i].place);
  }
  return places;
}

std::string EntryText(const Entry& entry, std::string_view comment) {
  std::string text;
  if (!comment.empty()) text += "# " + OnOneLine(comment) + "\n";
  text += "[[suppression]]\n";
  if (!entry.fingerprint.empty()) text += "fingerprint = " + Quoted(entry.fingerprint) + "\n";
  for (const Key& key : kPatterns) {
    if (!(entry.*key.member).empty()) text += std::string(key.name) + " = " + Quoted(entry.*key.member) + "\n";
  }
  for (const Key& key : kTexts) text += std::string(key.name) + " = " + Quoted(entry.*key.member) + "\n";
  return text + "until = " + entry.until + "\n";
}

Status AppendEntry(const std::string& path, const Entry& entry, std::string_view comment) {
  std::error_code error;
  std::string text;
  if (std::filesystem::exists(path, error)) {
    const Result<Suppressions> known = Suppressions::Read(path);  // a file that is wrong is not made longer
    if (!known.ok()) return known.status();
    const Result<std::string> before = ReadFile(path);
    if (!before.ok()) return before.status();
    text = *before;
    if (!text.empty() && text.back() != '\n') text += '\n';
    if (!text.empty()) text += '\n';
  }
  text += EntryText(entry, comment);
  const Result<Suppressions> whole = Suppressions::Parse(text, path);
  if (!whole.ok()) return whole.status();
  return WriteFile(path, text, Exit::Failure);
}

}  // namespace cuaudit::harness
