// SPDX-License-Identifier: MIT
// report_files.h: writes a report to stdout, or to a file that is written completely or not at all.
//
//   Errors    one line that names the file.
#pragma once

#include <string>
#include <string_view>

#include "harness/options/options.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Checks before the work starts that the output can be written. Empty: stdout.
Status CheckOutput(const std::string& output, std::string_view option = "--output");

Status WriteReport(const report::Run& run, const Output& output);

// The time of a report: now, or SOURCE_DATE_EPOCH.
std::string Timestamp();

}  // namespace cuaudit::harness
