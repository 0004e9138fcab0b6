// SPDX-License-Identifier: MIT
// report_rows.h: a sweep as the rows of its report: the calls of the fault-free run, what failing each of them did, and the way back of
// each defect; and its trials as the rows of `--trials=FILE`.
//
//   Errors    one line that names the file. The file is written whole or not at all. Beyond the first ten thousand calls and twenty thousand
//             trials only their number is told.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/sweep/run/after_fault.h"
#include "harness/sweep/run/trial.h"
#include "reports/run.h"
#include "reports/trials_writer.h"

namespace cuaudit::harness {

// Called when `run` has its defects. `results` are the trials by number; those that `only_shrinks` are no trials of the sweep.
void TellCalls(const Rehearsed& rehearsal, const FaultFreeCalls& calls, const std::map<std::size_t, TrialResult>& results,
               const std::function<bool(std::size_t)>& only_shrinks, SiteTexts* sites, report::Run* run);

report::TrialRow RowOf(const TrialResult& trial);

// `run` is the report of the sweep, whole or interrupted.
Status WriteTrialRows(const std::vector<report::TrialRow>& trials, const report::Run& run, const std::string& file);

}  // namespace cuaudit::harness
