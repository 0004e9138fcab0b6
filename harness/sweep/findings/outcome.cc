// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/outcome.h"

#include <algorithm>

namespace cuaudit::harness {
namespace {

report::NeverFired WhatNeverFired(std::span<const TrialResult* const> trials, std::size_t planned, const std::string& dir) {
  report::NeverFired never;
  for (const TrialResult* const trial : trials) {
    if (!trial->stray && !trial->fired) ++never.trials[trial->missed];
  }
  never.planned = planned;
  never.journals = dir;
  if (trials.size() != 1 || trials.front()->unfired.empty()) return never;
  for (const std::size_t fault : trials.front()->unfired) never.faults.push_back(trials.front()->faults[fault]);
  never.of = trials.front()->faults.size();
  return never;
}

}  // namespace

void RequireCoverage(std::uint64_t tenths, report::Run* run) {
  const std::uint64_t got = report::PerMille(*run->coverage);
  if (got >= tenths) return;
  run->message.coverage = {got, tenths};
  if (run->outcome == words::Outcome::Clean) run->outcome = words::Outcome::NotExercised;
}

void SetOutcome(std::span<const TrialResult* const> trials, std::size_t possible, const std::string& dir, report::Run* run) {
  std::size_t planned = 0;
  for (const TrialResult* const trial : trials) planned += trial->stray ? 0 : 1;
  report::Message& message = run->message;
  message.never_fired = WhatNeverFired(trials, planned, dir);
  if (planned == 0) message.nothing = possible == 0 ? report::NothingPlanned::NothingCanFail : report::NothingPlanned::NothingChosen;
  const bool tried = message.never_fired.trials.empty() && planned != 0;
  run->outcome = !run->findings.empty() ? words::Outcome::Findings : tried ? words::Outcome::Clean : words::Outcome::NotExercised;
  if (planned < possible) message.chosen = {planned, possible};
}

void RefuseUnseenAbandonment(const faults::JournalHeader& header, std::span<const TrialResult* const> trials, report::Run* run) {
  const auto unseen = [](const TrialResult* trial) {
    return !trial->stray && trial->verdict == Verdict::AbandonedAtExit &&
           std::any_of(trial->notes.begin(), trial->notes.end(),
                       [](const TrialFindingText& note) { return note.rule == Rule::AbandonedAtExit; });
  };
  const auto abandoned = static_cast<std::uint64_t>(std::count_if(trials.begin(), trials.end(), unseen));
  if (abandoned == 0) return;
  const std::uint32_t flags = header.flags.load();
  if ((flags & faults::kHostProbesActive) != 0 && (flags & faults::kHeapLeftOut) == 0) return;
  run->message.abandoned = {abandoned, run->totals.trials};
  if (run->outcome == words::Outcome::Clean) run->outcome = words::Outcome::NotExercised;
}

}  // namespace cuaudit::harness
