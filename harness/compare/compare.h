// SPDX-License-Identifier: MIT
// compare.h: what is new, changed, unchanged, fixed or not run in an audit, compared with an earlier one.
//
// README.md says when a defect that is gone is fixed, and when it is not run.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/compare/known_defect.h"
#include "reports/audit.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct Base {
  std::string name;  // as the user named it
  std::vector<KnownDefect> defects;
  std::set<KnownRun> runs;             // none of a baseline file of version 1, which does not list them
  std::optional<report::Audit> audit;  // nothing: the defects are those of a baseline file
};

// Base of all that `audit` has.
Base BaseOf(std::string name, report::Audit audit);

// Sets Defect::change and `was` of each defect of `head`, and head->comparison.
void CompareWith(Base base, report::Audit* head);

}  // namespace cuaudit::harness
