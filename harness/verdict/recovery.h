// SPDX-License-Identifier: MIT
// recovery.h: checks that the clean cycle after a faulted one works in the same process.
//
//   Owns      its findings. Borrows ledgers and journals while judging.
//   Errors    never fails. When the check is impossible, `recovery` says why.
//
// A program that marks its cycles is checked in the cycle after the last injected call. That cycle must end, report what the same cycle of
// the rehearsal reports, have no failing call that does not fail there, and hold nothing at its end that the rehearsal does not hold.
// For a lifecycle in C++ the clean cycle is separate evidence (steps.h): its steps must succeed, and it must leave what the rehearsal
// leaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "faults/journal/record.h"
#include "faults/plan/fault.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

class Rehearsed;

struct RecoveryCheck {
  Recovery recovery = Recovery::NoFault;
  std::vector<TrialFinding> findings;  // not_recovered, and what the clean cycle of a lifecycle left or did wrong
  std::vector<TrialFinding> excused;   // misuse in the clean cycle of a lifecycle that `excuse` excuses
};

// Of a lifecycle whose faulted cycle ends with these records: whether the clean cycle afterwards proves anything. `given` is true when the
// lifecycle was given its context: after a lost one it can only work if it makes a new context itself.
[[nodiscard]] Recovery RecoveryAfter(std::span<const faults::Fault> faults, bool given, std::span<const faults::Record> records);

// True for a misuse that exists only because of what `trial` was told.
using Excuse = bool (*)(const Evidence& trial, const TrialFinding& misuse);

// A null `excuse` excuses nothing.
[[nodiscard]] RecoveryCheck CheckRecovery(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options, Excuse excuse);

}  // namespace cuaudit::harness
