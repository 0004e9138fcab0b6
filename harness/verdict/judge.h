// SPDX-License-Identifier: MIT
// judge.h: judges one trial by comparing it with the fault-free rehearsal.
//
//   Owns      its findings. Borrows ledgers and journals while judging.
//
// Objects and violations of two runs are matched by SiteKey: the call and its call stack as offsets in modules, so address randomisation
// does not matter. An object that the rehearsal leaves at the same place, in the same number, is process-lifetime.
#pragma once

#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

class Rehearsed;

// Judges a trial beside a fault-free run. With `rehearsal` null the trial is judged as a fault-free run: all that it leaves is a note,
// unless nothing may stay.
[[nodiscard]] Judgement Judge(const Rehearsed* rehearsal, const Evidence& trial, const JudgeOptions& options);

// Judge for a single trial. `rehearsal` is only used when `faulted` is true.
[[nodiscard]] Judgement Judge(const Evidence& rehearsal, const Evidence& trial, bool faulted, const JudgeOptions& options);

}  // namespace cuaudit::harness
