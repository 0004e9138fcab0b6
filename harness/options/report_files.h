// SPDX-License-Identifier: MIT
// report_files.h: where a report goes: stdout, or a file that is written whole or not at all.
//
//   Threads   safe; no state.
//   Errors    one line that names the file.
//   Faults    makes no driver calls.
#pragma once

#include <string>

#include "harness/options/options.h"
#include "reports/run.h"

namespace cuaudit::harness {

// An output that cannot be written is found out before the work, not after it. Empty: stdout.
Status CheckOutput(const std::string& output);

Status WriteReport(const report::Run& run, const Output& output);

// Now, or SOURCE_DATE_EPOCH, as reports have it.
std::string Timestamp();

}  // namespace cuaudit::harness
