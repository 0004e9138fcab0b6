// SPDX-License-Identifier: MIT
// outcome.h: what all trials together amount to.
//
//   Threads   pure.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "harness/sweep/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Sets run->outcome and run->message from `trials`, run->findings and run->totals.pruned. `possible`: how many faults there were before the
// user's own choice of calls and number, and before pruning. `dir`: where the journals lie.
void SetOutcome(std::span<const TrialResult> trials, std::size_t possible, const std::string& dir, report::Run* run);

// Of a sweep, after SetOutcome: without host records nobody can tell a program that gave up from one that unwound all but its driver
// objects, so a sweep that excused leaks as abandoned is not exercised instead of clean.
void RefuseUnseenAbandonment(const faults::JournalHeader& header, report::Run* run);

// Too little fault coverage is as good as not exercised, unless there are findings. `tenths`: of a percent.
void RequireCoverage(std::uint64_t tenths, report::Run* run);

}  // namespace cuaudit::harness
