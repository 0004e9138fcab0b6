// SPDX-License-Identifier: MIT
// lift_calls.h: the driver calls of recorded runs as a CallList.
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
//
// The CUDA runtime learns the handle of a primary context through private tables of the driver and makes the context current before it
// retains it. That cuCtxSetCurrent is moved right behind the cuDevicePrimaryCtxRetain, because only then does a variable hold the context.
#pragma once

#include <span>

#include "harness/kit/call_list.h"
#include "harness/kit/defect_shown.h"
#include "harness/process/status.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"

namespace cuaudit::harness {

// `faults` are those of the last run, one fewer than there are runs. `places` names where the calls came from. `lost` are the places at
// which the defect acquires what it loses (Step::of_defect).
Result<CallList> LiftCalls(std::span<const Observation> runs, std::span<const faults::Fault> faults, std::span<const Wrong> wanted,
                           SiteTexts* places, std::span<const report::Acquired> lost = {});

}  // namespace cuaudit::harness
