// SPDX-License-Identifier: MIT
// trial_trace.h: what the steps of one trial returned, in addition to the journal of its calls.
//
//   Owns      plain values, which may lie in memory shared with a forked child.
//   Units     records and tickets of the journal.
//   Errors    `finished` false: the trial did not reach the end of that cycle.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "harness/probes/host_meters.h"
#include "harness/verdict/steps.h"

namespace cuaudit::harness {

// What the host drop-in saw of one cycle: heap blocks as numbers, all else as records of its journal.
struct HostSpan {
  HostNet net;
  std::size_t first = 0;
  std::size_t end = 0;  // one past the last
  // Requests of the program's own modules, when they are counted.
  std::uint32_t allocations = 0;
  std::uint32_t threads = 0;
};

struct CycleTrace : CycleSteps {
  bool finished = false;
  std::size_t first_record = 0;
  std::size_t end_record = 0;  // one past the last
  std::uint64_t begin = 0;     // ticket at its begin; `end` at its end
  std::uint64_t end = 0;
  HostChange host;               // of the meters that were asked for
  std::uint64_t heap_bytes = 0;  // heap bytes at the end, when asked for
  HostSpan seen;
};

inline constexpr std::size_t kMostCycles = 2;

struct TrialTrace {
  bool opened = false;           // a world was opened
  bool finished = false;         // the run reached its end, whatever the steps returned
  bool prepared = false;         // the preparation of the case succeeded
  std::uint32_t kept = 0;        // objects that could not be released on the genuine driver
  std::uint32_t unguarded = 0;   // released objects that the case believes alive and whose handles could reach the genuine driver
  std::uint64_t unheard = 0;     // statements of a pool about blocks through another table than the trial's gate
  CUresult lost = CUDA_SUCCESS;  // sticky error of the genuine driver's context after the trial
  StepTrace prepare;
  CycleTrace cycle[kMostCycles];  // the faulted cycle, then a clean one in the same world
  std::size_t first_failed = 0;   // first cycle that reported a failure, from 1; 0: none
  CycleTrace failed;              // the trace of that cycle
};

}  // namespace cuaudit::harness
