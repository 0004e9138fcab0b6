// SPDX-License-Identifier: MIT
#include "harness/compare/suppressions.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "harness/defect/blame.h"
#include "harness/defect/defects.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

using Entry = Suppressions::Entry;

constexpr char kToday[] = "CUAUDIT_TODAY";

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

// What the outcome would be if the findings were not there. Reports say beside their findings what else is wrong.
report::Outcome WithoutFindings(const report::Run& run) {
  if (run.message.bad_end) return report::Outcome::Error;
  return report::WhyInPart(run.message).empty() ? report::Outcome::Clean : report::Outcome::NotExercised;
}

bool AllSuppressed(const report::Run& run) {
  return !run.defects.empty() && std::all_of(run.defects.begin(), run.defects.end(), report::IsSuppressed);
}

// Makes the outcome anew after the suppressions of the defects have changed. `before`: all defects were suppressed, so that the outcome
// was that of a report without findings. An interrupted run stays interrupted.
void MakeOutcome(bool before, report::Run* run) {
  if (run->outcome == report::Outcome::Interrupted) return;
  const bool all = AllSuppressed(*run);
  if (before && !all) {
    run->outcome = WithFindings(*run);
  } else if (all && (run->outcome == report::Outcome::Findings || run->outcome == report::Outcome::Left)) {
    run->outcome = WithoutFindings(*run);
  }
}

}  // namespace

report::Outcome WithFindings(const report::Run& run) {
  const auto stayed = [](const report::Finding& finding) { return finding.rule == report::Rule::LeftAtExit; };
  const bool left = !run.findings.empty() && std::all_of(run.findings.begin(), run.findings.end(), stayed);
  return run.mode == report::Mode::Run && left ? report::Outcome::Left : report::Outcome::Findings;
}

bool IsDay(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd";
  const auto fits = [](char c, char shape) { return shape == 'd' ? c >= '0' && c <= '9' : c == shape; };
  if (!std::equal(text.begin(), text.end(), kShape.begin(), kShape.end(), fits)) return false;
  const auto number = [text](std::size_t at, std::size_t size) { return std::atoi(std::string(text.substr(at, size)).c_str()); };
  const std::chrono::month month(static_cast<unsigned>(number(5, 2)));
  return (std::chrono::year(number(0, 4)) / month / number(8, 2)).ok();
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
  return {Exit::Usage, std::string(kToday) + ": '" + report::ForTerminal(fixed) + "': expected a day such as 2026-11-26"};
}

std::string LastDay(std::string_view today) {
  constexpr int kYears = 2;
  char year[16];
  std::snprintf(year, sizeof(year), "%04d", std::atoi(std::string(today.substr(0, 4)).c_str()) + kYears);
  return year + std::string(today.substr(4));
}

void ExpireSuppressed(std::string_view today, report::Run* run) {
  const bool before = AllSuppressed(*run);
  for (report::Defect& defect : run->defects) {
    if (defect.suppressed) defect.suppressed->expired = std::string_view(defect.suppressed->until) < today;
  }
  MakeOutcome(before, run);
}

void Suppressions::Apply(std::string_view today, report::Run* run) {
  const bool before = AllSuppressed(*run);
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
  }
  MakeOutcome(before, run);
}

std::vector<std::string> Suppressions::Unused() const {
  std::vector<std::string> places;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!used_[i]) places.push_back(entries_[i].place);
  }
  return places;
}

}  // namespace cuaudit::harness
