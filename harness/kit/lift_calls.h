// SPDX-License-Identifier: MIT
// lift_calls.h: the driver calls of recorded runs as a CallList, and how a run is recorded.
//
//   Owns      plain values; the runs may go away afterwards.
//   Threads   one thread.
//   Errors    Status: the runs hold no such path.
//
// The runs are those of one trial, built up fault by fault: the first without faults, the next with the first fault, the last with all. The
// path is that of the last run. What follows a failing call when it succeeds is taken from the run before, from the same call on: the n-th
// call of an entry point is the same call in two runs, however threads take turns, as long as the runs have not parted.
//
// The calls are those of one process: of the call that fails, or, without faults, of the process that shows most of what is wanted.
//
// A handle becomes the variable that the call which made it wrote, and an address an offset in the memory that it lies in. No address and
// no content of memory remains, nor what a call writes there (faults::IsData): it is 0, and a wait for a value is one for at least 0.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/kit/call_list.h"
#include "harness/kit/defect_shown.h"
#include "harness/process/status.h"
#include "harness/process/work_dir.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"

namespace cuaudit::harness {

// `faults` are those of the last run, one fewer than there are runs. `places` names where the calls came from.
Result<CallList> LiftCalls(std::span<const Observation> runs, std::span<const faults::Fault> faults, std::span<const Wrong> wanted,
                           SiteTexts* places);

// Number of processes that call the driver.
std::size_t CallingProcesses(const Observation& run);

// Runs a program under the faults of one trial, one more each time, and keeps what was seen.
//
//   Owns      the observations; the journals are removed.
//   Errors    Status: the program cannot be run, or a run is unfit (observation.h).

// The first run has no faults, the last one all of them. Host resources are not watched. `interrupted` is the signal that ended it, or 0.
Result<std::vector<Observation>> RecordTrial(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults,
                                             int* interrupted);

}  // namespace cuaudit::harness
