// SPDX-License-Identifier: MIT
// rehearsal.h: the fault-free runs that every trial is compared with.
//
//   Owns      the first run's journal and ledger.
//   Threads   one thread.
//   Errors    Status when a run is unfit (observation.h) or was interrupted. Two runs that differ are no error: the case is drifting.
//   Faults    makes no driver calls.
//   Source    design section 7, step 1.
#pragma once

#include <string>

#include "harness/sweep/observation.h"
#include "harness/sweep/work_dir.h"

namespace cuaudit::harness {

struct Rehearsal {
  Observation run;
  bool drifting = false;
  std::string drift;  // "call 12: cuMemAlloc, then cuStreamCreate"
};

// Runs the program once, or twice to see whether it does the same each time.
Result<Rehearsal> Rehearse(const Subject& subject, const WorkDir& dir, int runs, int* interrupted);

// The first driver call, counted from 1 in order of the clock, at which two runs part: "call 12: cuMemAlloc, then cuStreamCreate".
std::string FirstDifference(const faults::JournalView& first, const faults::JournalView& second);

}  // namespace cuaudit::harness
