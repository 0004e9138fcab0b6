// SPDX-License-Identifier: MIT
// sweep_digest.h: what two sweeps must have in common for one to continue the trials of the other.
//
//   Errors    an unreadable file counts as different.
#pragma once

#include <cstdint>

#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {

// Hash of the options that decide which trials are planned and how they are judged, and of `subject` (SubjectHash).
[[nodiscard]] std::uint64_t OptionsHash(const SweepOptions& options, std::uint64_t subject);

// Hash of the program and everything else that two sweeps must share to continue each other's trials.
std::uint64_t SubjectHash(const Subject& subject, const Rehearsal& rehearsal, const JudgeOptions& judge);

// True when the directory holds the plan of this sweep, so that the sweep can continue with the fault-free runs behind that plan.
bool HoldsPlanOf(const WorkDir& dir, const SweepOptions& options, std::uint64_t subject);

}  // namespace cuaudit::harness
