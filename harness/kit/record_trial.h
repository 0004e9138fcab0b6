// SPDX-License-Identifier: MIT
// record_trial.h: runs a program under the faults of one trial, one more each time, and keeps what was seen.
//
//   Owns      the observations; the journals are removed.
//   Threads   one thread.
//   Errors    Status: the program cannot be run, or a run is unfit (observation.h).
#pragma once

#include <string>
#include <vector>

#include "harness/process/work_dir.h"
#include "harness/sweep/run/observation.h"

namespace cuaudit::harness {

// The first run has no faults, the last one all of them. Host resources are not watched. `interrupted` is the signal that ended it, or 0.
Result<std::vector<Observation>> RecordTrial(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults,
                                             int* interrupted);

}  // namespace cuaudit::harness
