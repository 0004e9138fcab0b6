// SPDX-License-Identifier: MIT
// trial_trace.h: what the steps of one trial answered, beside what the journal has of its calls.
//
//   Owns      nothing; plain values that may lie in memory shared with a forked child.
//   Threads   values; no shared state.
//   Units     records and tickets of the journal.
//   Errors    `finished` false: the trial did not come to the end of that cycle.
//   Faults    makes no driver calls.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "harness/probes/host_meters.h"
#include "harness/probes/host_watch.h"
#include "harness/verdict/steps.h"

namespace cuaudit::harness {

// What the host drop-in saw of one cycle: heap blocks as numbers, all else as records of its journal.
struct HostSpan {
  HostNet net;
  std::size_t first = 0;
  std::size_t end = 0;  // one past the last
  // What the program's own modules asked for, where that is counted.
  std::uint32_t allocations = 0;
  std::uint32_t threads = 0;
};

struct CycleTrace : CycleSteps {
  bool finished = false;
  std::size_t first_record = 0;
  std::size_t end_record = 0;  // one past the last
  std::uint64_t begin = 0;     // the clock at its begin and end
  std::uint64_t end = 0;
  HostChange host;               // of the meters that were asked for
  std::uint64_t heap_bytes = 0;  // at the end, when they were
  HostSpan seen;
};

inline constexpr std::size_t kMostCycles = 2;

struct TrialTrace {
  bool opened = false;           // there was a world
  bool finished = false;         // the run came to its end, whatever the steps answered
  bool prepared = false;         // what the case itself does beforehand succeeded
  std::uint32_t kept = 0;        // objects that could not be given back to the genuine driver
  std::uint32_t unguarded = 0;   // objects gone although the case was told otherwise, whose handles could reach the genuine driver
  std::uint64_t unheard = 0;     // blocks that a pool told of through another table than the trial's gate
  CUresult lost = CUDA_SUCCESS;  // what the genuine driver's context answers after the trial, if it is lost
  StepTrace prepare;
  CycleTrace cycle[kMostCycles];  // the faulted one, then a clean one in the same world
  std::size_t first_failed = 0;   // which cycle first reported a failure, counted from 1; 0: none
  CycleTrace failed;              // that one
};

}  // namespace cuaudit::harness
