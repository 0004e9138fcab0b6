// SPDX-License-Identifier: MIT
// trial_rows.h: the trials of a sweep as the rows of `--trials=FILE`.
//
//   Errors    one line that names the file. The file is written whole or not at all.
#pragma once

#include <string>
#include <vector>

#include "harness/sweep/sweep_engine.h"
#include "reports/trials_writer.h"

namespace cuaudit::harness {

// The trials that have ended, in the order of the plan, without those that only look for fewer faults of a finding.
std::vector<report::TrialRow> TrialRows(const SweepEngine& engine);

// `run` is the report of the sweep, whole or interrupted.
Status WriteTrialRows(const std::vector<report::TrialRow>& trials, const report::Run& run, const std::string& file);

}  // namespace cuaudit::harness
