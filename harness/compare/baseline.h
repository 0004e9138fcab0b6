// SPDX-License-Identifier: MIT
// baseline.h: the defects of a release as a small text file that lives in the repository.
//
//   Errors    one line with the file, the line and what was expected.
//
// The first line says what the file is. Each further line is a JSON object: a run that proved something, {"case":"player","mode":"sweep"},
// or a defect in one. They are sorted by case, mode and fingerprint, so that two branches that add some merge line by line. Lines about one
// defect, as a merge may leave them, are taken together. A file of version 1 has no lines for runs, and is still read.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/known_defect.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

// True for a text that begins like a baseline file, whatever its version, also with a byte order mark, which ParseBaseline refuses.
bool IsBaseline(std::string_view text);

// True for a line that a merge left in a file because both sides had changed it.
bool IsConflict(std::string_view line);

struct Baseline {
  std::vector<KnownDefect> defects;
  std::set<KnownRun> runs;
};
Baseline BaselineOf(const report::Audit& audit);

std::string BaselineText(Baseline baseline);

// `name` stands in the error.
Result<Baseline> ParseBaseline(std::string_view text, const std::string& name);

}  // namespace cuaudit::harness
