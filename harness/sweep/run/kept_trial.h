// SPDX-License-Identifier: MIT
// kept_trial.h: the recorded runs of one trial as a directory, which another machine can read without the program and without its driver.
//
//   run-0.journal   the run without a fault; run-1 with the first fault of the trial, and so on
//   result.json     the report that has the defect
//   replay.json     the report of this one trial; missing where result.json is that
//
//   Errors    one line with the file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "faults/journal/journal_view.h"
#include "harness/process/status.h"
#include "harness/sweep/run/observation.h"

namespace cuaudit::harness {

inline std::string ResultOfTrial(const std::string& directory) { return directory + "/result.json"; }
inline std::string ReplayOfTrial(const std::string& directory) { return directory + "/replay.json"; }

// Whether the directory holds a trial.
bool IsKeptTrial(const std::string& directory);

// Writes the run with so many faults. Makes the directory where there is none.
Status KeepRun(const std::string& directory, std::size_t faults, const faults::JournalView& journal);

// The runs with no fault up to so many. How they ended is not kept.
Result<std::vector<Observation>> ReadKeptRuns(const std::string& directory, std::size_t faults);

}  // namespace cuaudit::harness
