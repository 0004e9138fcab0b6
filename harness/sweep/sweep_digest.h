// SPDX-License-Identifier: MIT
// sweep_digest.h: what two sweeps must share for one to go on with the trials of the other.
//
//   Threads   pure, but for the files that it reads.
//   Errors    a file that cannot be read counts as another.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>

#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {

// What decides which trials a plan leads to, and what they come to: the options and, in `subject`, the program (SubjectHash).
[[nodiscard]] std::uint64_t OptionsHash(const SweepOptions& options, std::uint64_t subject);

// What two sweeps of one program must share to go on with each other's trials.
std::uint64_t SubjectHash(const Subject& subject, const Rehearsal& rehearsal, const JudgeOptions& judge);

// The directory holds the plan of this sweep: it can go on beside the fault-free runs from which that plan was made.
bool HoldsPlanOf(const WorkDir& dir, const SweepOptions& options, std::uint64_t subject);

}  // namespace cuaudit::harness
