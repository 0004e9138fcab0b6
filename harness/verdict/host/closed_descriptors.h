// SPDX-License-Identifier: MIT
// closed_descriptors.h: finds descriptors that a trial closed and that the closing code did not own, by comparing with the fault-free run.
//
//   Owns      its findings. Borrows ledgers and journals while it runs.
//   Errors    finds nothing where the host probes did not watch the whole run.
//
// The kernel gives the number of a closed descriptor to the next one that is opened. A close that comes twice therefore closes what
// somebody else has opened meanwhile.
#pragma once

#include <vector>

#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

// Findings of the rule deficit, one for each close.
[[nodiscard]] std::vector<TrialFinding> ClosedByWrongOwner(const Evidence& rehearsal, const Evidence& trial);

}  // namespace cuaudit::harness
