// SPDX-License-Identifier: MIT
// recording_report.h: what a recording (`cuaudit record`) amounts to: the report of `explain`, and of `cycles --from-journal`.
//
//   Errors    a file that is no recording, or is cut: one line, exit status 2.
//
// A recording may lack its beginning, and its program may have been killed. Nothing is called clean that the recording cannot show, and
// nothing is called a leak that may have been released out of sight.
#pragma once

#include <cstddef>
#include <string>

#include "harness/cli/progress.h"
#include "harness/options/options.h"
#include "harness/process/status.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"
#include "reports/run.h"

namespace cuaudit::harness {

// The steps of explain and cycles --from-journal: the records are read, and judged.
inline constexpr std::size_t kRecordingSteps = 2;

// Reads a recording or another journal, and shows that.
Result<Observation> ReadShown(const std::string& path, Progress* progress);

Exit ExplainRecording(const Options& options, Observation seen, Progress* progress);
Exit CyclesOfRecording(const Options& options);

// What `explain` reports of the recording `file`. `sites` have been told where to look, and what the CUDA runtime keeps (MarkRuntimeOwned).
report::Run ReportOfRecording(const Observation& seen, const std::string& file, SiteTexts* sites);

// One line when the file is shorter than its header says.
Status CheckWhole(const Observation& seen);

}  // namespace cuaudit::harness
