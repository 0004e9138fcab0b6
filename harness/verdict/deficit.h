// SPDX-License-Identifier: MIT
// deficit.h: finds what a trial gave back without owning it, by comparing with the fault-free run.
//
//   Owns      its findings. Borrows ledgers and journals while it runs.
//
// README.md ("Less than the fault-free run") says what counts, and what is no finding.
#pragma once

#include <vector>

#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

class Rehearsed;

// Adds findings of the rules deficit and null_released to what the trial did wrong. Where the ledger has blamed a later call for the same
// loss (the owner's release finds nothing left), the finding moves to the call that took it.
void AddDeficits(const Rehearsed& rehearsal, const Evidence& trial, std::vector<TrialFinding>* violations);

// Takes away what is told of objects that a reset has ended under their owner: the deficit among `violations` tells it.
void DropTaken(const Evidence& trial, const std::vector<TrialFinding>& violations, std::vector<TrialFinding>* leaks);

// Takes what a reset ended in a context that an error had ended before, or the last release after such a reset was refused.
[[nodiscard]] std::vector<TrialFinding> TakeLost(const Evidence& trial, std::vector<TrialFinding>* leaks);

// False when none of the calls can be a deficit, so that no fault-free run need be asked.
[[nodiscard]] bool MayGiveTooMuch(const Evidence& run);

}  // namespace cuaudit::harness
