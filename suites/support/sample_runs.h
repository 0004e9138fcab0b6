// SPDX-License-Identifier: MIT
// sample_runs.h: literal runs whose written forms are the golden files.
//
//   Owns      nothing; each call makes a new value.
#pragma once

#include <string>
#include <vector>

#include "reports/run.h"

namespace cuaudit::suites {

struct Sample {
  std::string name;  // in the golden files
  report::Run run;
};

report::Run SweepWithFindings();
report::Run CyclesWithGrowth();
report::Run OnePlaceManyCalls();
report::Run AbandonedTrials();
report::Run LiveTable();
report::Run ProvedMisuse();
report::Run CleanSweep();
report::Run SecondFaults();  // two faults, one of them shrunk; what was pruned, what was not reached, a recovery that failed
report::Run NotExercised();
report::Run InterruptedSweep();
report::Run ReplayedFault();   // one fault given with its error, one without
report::Run HostileStrings();  // markup, control characters, bytes that are not UTF-8, shell metacharacters

std::vector<Sample> Samples();

}  // namespace cuaudit::suites
