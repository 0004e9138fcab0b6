// SPDX-License-Identifier: MIT
// suppressions.toml: entries as a file has them.
#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"
#include "faults/plan/fault.h"
#include "faults/probes/host_reading.h"
#include "harness/compare/suppressions.h"
#include "harness/defect/defects.h"
#include "harness/process/files.h"
#include "harness/process/status.h"
#include "harness/process/toml_file.h"
#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

using Entry = Suppressions::Entry;
using Sort = TomlValue::Sort;

struct Key {
  std::string_view name;
  std::string Entry::*member;
};
constexpr std::array<Key, 9> kKeys = {{{"fingerprint", &Entry::fingerprint},
                                       {"rule", &Entry::rule},
                                       {"kind", &Entry::kind},
                                       {"module", &Entry::module},
                                       {"acquired_in", &Entry::acquired_in},
                                       {"failing_call", &Entry::failing_call},
                                       {"blamed", &Entry::blamed},
                                       {"reason", &Entry::reason},
                                       {"owner", &Entry::owner}}};
constexpr std::span<const Key> kPatterns = std::span(kKeys).subspan(1, 6);
constexpr std::span<const Key> kTexts = std::span(kKeys).subspan(7);
constexpr std::string_view kUntil = "until";

std::vector<std::string> AllKeys() {
  std::vector<std::string> keys;
  keys.reserve(kKeys.size() + 1);
  for (const Key& key : kKeys) keys.emplace_back(key.name);
  keys.emplace_back(kUntil);
  return keys;
}

std::vector<std::string> AllRules() {
  std::vector<std::string> names;
  for (const words::RuleRow& row : words::kRules) names.emplace_back(row.name);
  return names;
}

// Objects, and what meters see where no object is known.
std::vector<std::string> AllKinds() {
  std::vector<std::string> names = {"loaded_object", "device_bytes"};
  for (const driver::KindRow& row : driver::kKinds) {
    if (!row.json_name.empty()) names.emplace_back(row.json_name);
  }
  for (const auto& row : faults::kHostMeters) names.emplace_back(row.name);
  return names;
}

// Entry points of the driver, and what fails of the host.
std::vector<std::string> AllCalls() {
  std::vector<std::string> names;
  for (const driver::BaseRow& row : driver::kBases) names.emplace_back(row.name);
  for (const faults::HostFaultRow& row : faults::kHostFaults) names.emplace_back(row.name);
  return names;
}

// Reads one entry. Every error names the file, the line and the column.
class EntryReader {
 public:
  EntryReader(const std::string& name, const TomlValue& table) : name_(name), table_(table) {}

  Status Read(Entry* entry) {
    entry->place = name_ + ":" + std::to_string(table_.line);
    const std::vector<std::string> keys = AllKeys();
    for (const TomlEntry& one : table_.entries) {
      if (std::find(keys.begin(), keys.end(), one.key) == keys.end()) {
        return Wrong(
            one.line, one.column,
            report::ForTerminal(one.key) + ": no such key, expected a key of a suppression: " + Joined(keys) + DidYouMean(one.key, keys));
      }
      const auto same = [&one](const Key& key) { return key.name == one.key; };
      Status read =
          one.key == kUntil ? ReadDay(one, &entry->until) : ReadText(one, std::find_if(kKeys.begin(), kKeys.end(), same)->member, entry);
      if (!read.ok()) return read;
    }
    Status named = CheckName("rule", "rule", entry->rule, AllRules(), "cuaudit list rules");
    if (named.ok()) named = CheckName("kind", "kind", entry->kind, AllKinds(), "cuaudit list kinds");
    if (named.ok()) named = CheckName("failing_call", "call", entry->failing_call, AllCalls(), "cuaudit list calls");
    if (named.ok()) named = CheckFingerprint(entry->fingerprint);
    if (!named.ok()) return named;
    return CheckWhole(*entry);
  }

 private:
  static std::string Joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }

  Status Wrong(std::uint32_t line, std::uint32_t column, const std::string& what) const {
    return {Exit::Usage, PlaceOf(name_, line, column) + ": " + what};
  }
  Status Wrong(const std::string& what) const { return Wrong(table_.line, table_.column, what); }
  static std::string Found(const TomlValue& value) {
    return "found " + (value.sort == Sort::Text ? "'" + report::ForTerminal(value.text) + "'" : Describe(value)) + ", expected ";
  }

  Status ReadText(const TomlEntry& one, std::string Entry::*member, Entry* entry) const {
    if (one.value.sort != Sort::Text || one.value.text.empty()) {
      return Wrong(one.value.line, one.value.column, one.key + ": " + Found(one.value) + "a text that is not empty");
    }
    entry->*member = one.value.text;
    return {};
  }

  // Texts and TOML's own dates are both days.
  Status ReadDay(const TomlEntry& one, std::string* until) const {
    const std::string wrong = one.key + ": " + Found(one.value);
    const bool day = (one.value.sort == Sort::Day || one.value.sort == Sort::Text) && IsDay(one.value.text);
    const std::string last = LastDay(Today());
    if (!day) return Wrong(one.value.line, one.value.column, wrong + "a day such as 2027-03-31");
    if (one.value.text > last) {
      return Wrong(one.value.line, one.value.column,
                   one.key + ": found " + one.value.text + ", expected a day at most two years ahead, up to " + last);
    }
    *until = one.value.text;
    return {};
  }

  // A pattern that fits no name accepts nothing for ever, and nobody would know.
  Status CheckName(std::string_view key, const char* what, const std::string& glob, const std::vector<std::string>& known,
                   const char* list) const {
    if (glob.empty() || std::any_of(known.begin(), known.end(), [&glob](const std::string& name) { return Fits(glob, name); })) return {};
    return WrongValue(key, std::string("a ") + what + ", or a pattern that fits one (" + list + ")" + DidYouMean(glob, known));
  }

  Status CheckFingerprint(const std::string& text) const {
    if (text.empty() || IsFingerprint(text)) return {};
    return WrongValue("fingerprint", "a fingerprint as reports show it, such as v2-0123456789abcdef");
  }

  Status WrongValue(std::string_view key, const std::string& expected) const {
    const auto at = std::find_if(table_.entries.begin(), table_.entries.end(), [key](const TomlEntry& one) { return one.key == key; });
    return Wrong(at->value.line, at->value.column, std::string(key) + ": " + Found(at->value) + expected);
  }

  Status CheckWhole(const Entry& entry) const {
    for (const Key& key : kTexts) {
      if ((entry.*key.member).empty()) return Wrong("expected " + std::string(key.name) + " in each suppression");
    }
    if (entry.until.empty()) return Wrong("expected until, the last day on which the suppression holds, such as 2027-03-31");
    bool some = false;
    bool narrows = false;
    for (const Key& key : kPatterns) {
      const std::string& glob = entry.*key.member;
      some = some || !glob.empty();
      narrows = narrows || glob.find_first_not_of("*?") != std::string::npos;
    }
    if (entry.fingerprint.empty() == !some) {
      return Wrong("expected a fingerprint, or patterns: rule, kind, module, acquired_in, failing_call, blamed");
    }
    if (some && !narrows) return Wrong("expected a pattern that is more than * and ?: this one accepts every defect");
    return {};
  }

  const std::string& name_;
  const TomlValue& table_;
};

Result<std::vector<Entry>> EntriesOf(const TomlValue& root, const std::string& name) {
  std::vector<Entry> entries;
  for (const TomlEntry& list : root.entries) {
    const std::string place = PlaceOf(name, list.line, list.column) + ": ";
    if (list.key != "suppression") {
      const std::vector<std::string> known = {"suppression"};
      return Status(Exit::Usage,
                    place + report::ForTerminal(list.key) + ": no such key, expected [[suppression]]" + DidYouMean(list.key, known));
    }
    const bool tables = list.value.sort == Sort::List && std::all_of(list.value.items.begin(), list.value.items.end(),
                                                                     [](const TomlValue& one) { return one.sort == Sort::Table; });
    if (!tables) return Status(Exit::Usage, place + "suppression: found " + Describe(list.value) + ", expected [[suppression]]");
    for (const TomlValue& one : list.value.items) {
      const Status read = EntryReader(name, one).Read(&entries.emplace_back());
      if (!read.ok()) return read;
    }
  }
  return entries;
}

// A comment ends with its line.
std::string OnOneLine(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return line;
}

}  // namespace

Result<Suppressions> Suppressions::Read(const std::string& path) {
  if (const Status known = CheckToday(); !known.ok()) return known;
  const Result<TomlValue> root = ReadToml(path);
  if (!root.ok()) return root.status();
  return Of(EntriesOf(*root, path));
}

Result<Suppressions> Suppressions::Given(const std::string& path) {
  if (path.empty()) return Suppressions();
  Result<Suppressions> read = Read(path);
  if (!read.ok()) return Status(Exit::Usage, OptionFlag{"--suppressions"}, read.status().message());
  return read;
}

Result<Suppressions> Suppressions::Parse(std::string_view text, const std::string& name) {
  const Result<TomlValue> root = ParseToml(text, name);
  if (!root.ok()) return root.status();
  return Of(EntriesOf(*root, name));
}

Result<Suppressions> Suppressions::Of(Result<std::vector<Entry>> entries) {
  if (!entries.ok()) return entries.status();
  Suppressions suppressions;
  suppressions.entries_ = std::move(*entries);
  suppressions.used_.resize(suppressions.entries_.size());
  return suppressions;
}

std::string EntryText(const Entry& entry, std::string_view comment) {
  std::string text;
  if (!comment.empty()) text += "# " + OnOneLine(comment) + "\n";
  text += "[[suppression]]\n";
  for (const Key& key : kKeys) {
    if (!(entry.*key.member).empty()) text += std::string(key.name) + " = " + TomlString(entry.*key.member) + "\n";
  }
  return text + "until = " + entry.until + "\n";
}

Status AppendEntry(const std::string& path, const Entry& entry, std::string_view comment) {
  std::error_code error;
  std::string text;
  if (std::filesystem::exists(path, error)) {
    const Result<Suppressions> known = Suppressions::Read(path);  // a file that is wrong is not made longer
    if (!known.ok()) return known.status();
    for (const Entry& one : known->entries()) {
      if (one.fingerprint.empty() || one.fingerprint != entry.fingerprint) continue;
      return {Exit::Usage, one.place + ": there is an entry for " + one.fingerprint + " already, until " + one.until + ": change that one"};
    }
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
