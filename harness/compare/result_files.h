// SPDX-License-Identifier: MIT
// result_files.h: reads what a user names as a base or a head.
//
//   Errors    one line with the file and what was expected; Exit::Usage.
#pragma once

#include <string>

#include "harness/compare/baseline.h"
#include "harness/compare/compare.h"
#include "harness/process/status.h"
#include "reports/audit.h"
#include "reports/json_node.h"

namespace cuaudit::harness {

// A result directory, its audit.json, a JSON report, or an archive (tar, also compressed, or zip) of a result directory. Its suppressions
// have expired or not by today, whatever they had when it was written.
Result<report::Audit> ReadResult(const std::string& path, const report::ReadSoFar& told = {});

// The same, or a baseline file.
Result<Base> ReadBase(const std::string& path, const report::ReadSoFar& told = {});

// Only a baseline file.
Result<Baseline> ReadBaseline(const std::string& path);

}  // namespace cuaudit::harness
