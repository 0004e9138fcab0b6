// SPDX-License-Identifier: MIT
// recorded_runs.h: how the runs of a trial are recorded, and which of their processes has the defect.
//
//   Owns      the observations; the journals are removed.
//   Threads   one thread.
//   Errors    Status: the program cannot be run, or a run is unfit (observation.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/kit/defect_shown.h"
#include "harness/process/status.h"
#include "harness/process/work_dir.h"
#include "harness/sweep/run/observation.h"

namespace cuaudit::harness {

// Runs a program under the faults of one trial, one more each time, and keeps what was seen. The first run has no faults, the last one all
// of them. Host resources are not watched. `interrupted` is the signal that ended it, or 0.
Result<std::vector<Observation>> RecordTrial(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults,
                                             int* interrupted);

// Number of processes that call the driver.
std::size_t CallingProcesses(const Observation& run);

// The process that has the defect, in each run: the one whose call is made to fail, or the one that shows what is wrong. Where neither
// tells, the one that makes most calls.
std::vector<std::uint32_t> ProcessesOf(std::span<const Observation> runs, std::span<const Wrong> wanted);

}  // namespace cuaudit::harness
