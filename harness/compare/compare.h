// SPDX-License-Identifier: MIT
// compare.h: what is new, changed, unchanged, fixed or not run in an audit, compared with an earlier one.
//
// A defect of the base that the new audit does not show is fixed only when it was looked for: its case was carried out and proved
// something with the same command and under settings that show the same, and each of its failing calls was made to fail again in the
// same function, at no fewer places. Functions that are gone count as renamed when those that only the new report has make the same calls,
// one to one; a baseline file does not say which functions the base had, so there they count as not run. README.md has all of it.
//
// A run of the base that the new audit does not have is not run, whether the base has a defect in it or not.
//
// Who is blamed may change with a wrapper around a release, so that one defect becomes two or two become one. What is lost in the same way
// as before, and no more of it, is neither new nor fixed (similarity.h).
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
