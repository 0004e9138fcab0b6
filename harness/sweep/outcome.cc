// SPDX-License-Identifier: MIT
#include "harness/sweep/outcome.h"

#include <map>
#include <vector>

#include "reports/host_notes.h"

namespace cuaudit::harness {
namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : ", ") + word;
  return line;
}

std::string HowMany(std::size_t some, std::size_t all, const char* what) {
  return std::to_string(some) + " of " + std::to_string(all) + " " + what;
}

// Empty when every fault fired.
std::string WhatNeverFired(std::span<const TrialResult> trials, std::size_t planned, const std::string& dir) {
  std::map<Missed, std::size_t> missed;
  std::size_t never = 0;
  for (const TrialResult& trial : trials) {
    if (trial.stray || trial.fired) continue;
    ++never;
    ++missed[trial.missed];
  }
  if (never == 0) return {};
  const TrialResult& first = trials.front();
  if (trials.size() == 1 && first.faults.size() > 1 && !first.unfired.empty()) {
    return HowMany(first.unfired.size(), first.faults.size(), "faults never fired: ") + Joined(first.unfired) +
           (first.missed == Missed::Late ? ", " + std::string(Row(first.missed).outcome) : "");
  }
  if (never == planned && missed[Missed::Unfired] == never) return "no fault fired, the program did not make those calls again";
  if (never == planned && missed[Missed::Late] == never) return "no fault fired, the program did not reach those calls within the deadline";
  std::vector<std::string> reasons;
  for (const auto& [why, count] : missed) {
    if (count != 0) reasons.push_back(std::to_string(count) + " " + Filled(Row(why).outcome, dir));
  }
  return HowMany(never, planned, "planned faults never fired: ") + Joined(reasons);
}

}  // namespace

void RequireCoverage(std::uint64_t tenths, report::Run* run) {
  const std::uint64_t got = report::PerMille(*run->coverage);
  if (got >= tenths) return;
  const auto percent = [](std::uint64_t value) { return std::to_string(value / 10) + "." + std::to_string(value % 10) + " %"; };
  const std::string before = run->outcome == "findings" && !run->message.empty() ? run->message + "; " : "";
  const std::string why = before + "fault coverage is " + percent(got) + ", wanted at least " + percent(tenths) + " (--coverage-at-least)";
  if (run->outcome == "clean") run->outcome = "not_exercised";
  const bool said = run->outcome == "not_exercised" && run->message.starts_with("not exercised: ");
  run->message = said ? run->message + "; " + why : (run->outcome == "not_exercised" ? "not exercised: " : "") + why;
}

void SetOutcome(std::span<const TrialResult> trials, std::size_t possible, const std::string& dir, report::Run* run) {
  std::size_t planned = 0;
  for (const TrialResult& trial : trials) planned += trial.stray ? 0 : 1;
  run->message = WhatNeverFired(trials, planned, dir);
  const bool tried = run->message.empty() && planned != 0;
  run->outcome = !run->findings.empty() ? "findings" : tried ? "clean" : "not_exercised";
  if (planned == 0) {
    run->message = possible == 0 ? "no call of the program can be made to fail" : "--call or --limit left no fault to try";
  } else if (tried && planned < possible && run->findings.empty()) {
    run->message = "clean for " + HowMany(planned, possible, "planned faults");
    std::uint64_t pruned = 0;
    for (const auto& [reason, count] : run->totals.pruned) pruned += count;
    if (pruned != 0) run->message += ", " + std::to_string(pruned) + " pruned as equal (--no-prune tries them)";
  }
  if (run->outcome == "not_exercised") run->message = "not exercised: " + run->message;
}

void SayHostNotes(report::Run* run) {
  const std::string shown = report::HostNotes(*run);
  if (run->outcome == "clean" && !shown.empty()) run->message = (run->message.empty() ? "clean" : run->message) + "; " + shown;
}

void RefuseUnseenAbandonment(const faults::JournalHeader& header, report::Run* run) {
  const auto abandoned = run->totals.verdicts.find(std::string(Name(Verdict::AbandonedAtExit)));
  if (abandoned == run->totals.verdicts.end() || run->outcome != "clean") return;
  const std::uint32_t flags = header.flags.load();
  if ((flags & faults::kHostProbesActive) != 0 && (flags & faults::kHeapLeftOut) == 0) return;
  run->outcome = "not_exercised";
  run->message =
      "not exercised: " + HowMany(abandoned->second, run->totals.trials, "trials abandoned at exit, and heap blocks were not looked at") +
      ": --host tells whether they unwound, --abandoned-is-leak reports what they left";
}

}  // namespace cuaudit::harness
