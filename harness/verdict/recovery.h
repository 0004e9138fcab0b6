// SPDX-License-Identifier: MIT
// recovery.h: whether the clean cycle after a faulted one works, in the same process.
//
//   Owns      its findings; borrows ledgers and journals while judging.
//   Threads   values; no shared state.
//   Errors    never fails; where nothing can be said it says why.
//   Faults    makes no driver calls.
//
// Asked of programs that mark their cycles. The cycle after the last injected call must end, report what the rehearsal's reports, see no
// call fail that does not fail in the rehearsal's, and leave nothing that the rehearsal does not hold when it has come that far. Of a
// lifecycle in C++ the clean cycle is evidence of its own (steps.h): its steps must succeed, and it must land where the rehearsal did.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/verdict/judge.h"

namespace cuaudit::harness {

struct RecoveryCheck {
  Recovery recovery = Recovery::NoFault;
  std::vector<TrialFinding> findings;  // not_recovered, and what the clean cycle of a lifecycle left or did wrong
};

[[nodiscard]] RecoveryCheck CheckRecovery(const Rehearsed& rehearsal, const Evidence& trial);

}  // namespace cuaudit::harness
