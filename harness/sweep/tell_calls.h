// SPDX-License-Identifier: MIT
// tell_calls.h: the calls of the fault-free run, what failing each of them did, and the way back of each defect, as a report shows them.
//
//   Errors    none. Beyond the first ten thousand calls and twenty thousand trials only their number is told.
#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "harness/sweep/run/after_fault.h"
#include "harness/sweep/run/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Called when `run` has its defects. `results` are the trials by number; those that `only_shrinks` are no trials of the sweep.
void TellCalls(const Rehearsed& rehearsal, const FaultFreeCalls& calls, const std::map<std::size_t, TrialResult>& results,
               const std::function<bool(std::size_t)>& only_shrinks, SiteTexts* sites, report::Run* run);

}  // namespace cuaudit::harness
