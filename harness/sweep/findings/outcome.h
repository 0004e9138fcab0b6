// SPDX-License-Identifier: MIT
// outcome.h: the outcome of an audit, from all its trials.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "harness/sweep/run/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Sets run->outcome and run->message from `trials`, run->findings and run->totals.pruned. `possible` is the number of faults before --call,
// --limit and pruning. `dir` is the directory of the journals.
void SetOutcome(std::span<const TrialResult* const> trials, std::size_t possible, const std::string& dir, report::Run* run);

// Called after SetOutcome for a sweep. Without host records, giving up cannot be told from unwinding everything except driver objects, so a
// sweep that excused leaks as abandoned becomes not exercised instead of clean, and says so beside findings. Leaks that the marked phase
// init excused need no host records.
void RefuseUnseenAbandonment(const faults::JournalHeader& header, std::span<const TrialResult* const> trials, report::Run* run);

// Makes a clean run not exercised when its coverage is below `tenths` of a percent.
void RequireCoverage(std::uint64_t tenths, report::Run* run);

}  // namespace cuaudit::harness
