// SPDX-License-Identifier: MIT
// small_bases.h: small audits as bases of a comparison, and what it says of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/compare/baseline.h"
#include "harness/compare/compare.h"
#include "suites/unit/compare/small_audits.h"

namespace cuaudit::harness::small_bases {

using namespace small_audits;  // NOLINT(google-build-using-namespace)
using report::Audit;
using report::Change;

inline Base BaseOf(Audit audit) { return harness::BaseOf("base", std::move(audit)); }

// The same, as a baseline file has it.
inline Base FileOf(const Audit& audit) {
  Baseline known = *ParseBaseline(BaselineText(BaselineOf(audit)), "base.txt");
  return {"base.txt", std::move(known.defects), std::move(known.runs), {}};
}

inline std::vector<Change> ChangesOf(const Audit& audit) {
  std::vector<Change> changes;
  for (const report::Case& one : audit.cases) {
    for (const report::Run& run : one.runs) {
      for (const report::Defect& defect : run.defects) changes.push_back(defect.change);
    }
  }
  return changes;
}

// Why the only defect of `before` was not run; "fixed" when it is fixed.
inline std::string Fate(const Base& base, Audit head) {
  CompareWith(base, &head);
  if (head.comparison->gone.size() != 1) return std::to_string(head.comparison->gone.size()) + " are gone";
  const report::Gone& gone = head.comparison->gone[0];
  return gone.change == Change::Fixed ? "fixed" + gone.because : gone.because;
}

}  // namespace cuaudit::harness::small_bases
