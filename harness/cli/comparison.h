// SPDX-License-Identifier: MIT
// comparison.h: what `compare` and `audit --base` do with a compared audit: exit status by policy, and the comparison as a file.
//
//   Errors    a Status with one line.
#pragma once

#include <set>
#include <string>

#include "harness/options/options.h"
#include "harness/process/status.h"
#include "reports/audit.h"

namespace cuaudit::harness {

// "new,changed,not-run" as the changes that make the exit status 1.
Result<std::set<report::Change>> ReadPolicy(const std::string& text);

Exit PolicyExit(const std::set<report::Change>& policy, const report::Audit& audit);

// Text and JSON are about the comparison; other formats show the defects of the head, each with what the comparison says of it.
Status WriteComparison(const report::Audit& audit, const Output& output);

}  // namespace cuaudit::harness
