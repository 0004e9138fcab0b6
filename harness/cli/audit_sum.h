// SPDX-License-Identifier: MIT
// audit_sum.h: what all cases of an audit come to.
//
//   Errors    none.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/case_runs.h"
#include "harness/process/status.h"
#include "harness/project/case_settings.h"

namespace cuaudit::harness {

struct AuditSum {
  Exit exit = Exit::Clean;  // the worst of the cases
  std::string line;         // "3 cases: 2 defects in 1, 1 clean, 1 cut short by the budget"
};

// Of the cases that are `selected`.
AuditSum SumOf(const std::vector<bool>& selected, const std::vector<CaseSeen>& seen);

// Entries of --suppressions that fit no defect of any case. Those of a file are known when all cases that take the file were carried out to
// their end.
std::vector<std::string> UnusedSuppressions(const std::vector<ProjectCase>& cases, const std::vector<CaseSeen>& seen);

}  // namespace cuaudit::harness
