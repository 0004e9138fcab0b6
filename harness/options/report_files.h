// SPDX-License-Identifier: MIT
// report_files.h: writes a report to stdout, or to a file that is written completely or not at all.
//
//   Errors    one line that names the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/options/options.h"
#include "reports/audit.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Checks before the work starts that the output can be written. Empty: stdout. "-" is refused: a file of that name is never meant. A named
// pipe is open from now on.
Status CheckOutput(const std::string& output, std::string_view option = "--output");
// The same for all results of a command.
Status CheckOutputs(const Options& options);

// How far a command or a sweep had come when a signal ended it.
struct Progressed {
  int signal = 0;             // number of the signal; 0: none
  std::uint64_t done = 0;     // trials; for `cycles` and `run`: runs of the program
  std::uint64_t planned = 0;  // 0: the fault-free runs were still under way
  bool more = false;          // the plan was not complete yet
};

// Makes `run`, which holds the results so far, the report of what a signal ended.
void SetInterrupted(const Progressed& progressed, report::Run* run);

// In the format github the page for people is also added to the file that GITHUB_STEP_SUMMARY names, when it is set.
Status WriteReport(const report::Run& run, const Output& output);
// The same for several reports. JSON holds one report, so an audit of more than one is refused.
Status WriteAudit(const report::Audit& audit, const Output& output);

// True when stdout is a terminal that shows colours and NO_COLOR is not set.
bool WantsColour();

// The time of a report: now, or SOURCE_DATE_EPOCH.
std::string Timestamp();

}  // namespace cuaudit::harness
