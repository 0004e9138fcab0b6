// SPDX-License-Identifier: MIT
// baseline.h: the defects of a release as a small text file that lives in the repository.
//
//   Errors    one line with the file, the line and what was expected.
//
// The first line says what the file is. Each further line is one defect as a JSON object, sorted by case, mode and fingerprint, so that two
// branches that add defects merge line by line. Lines about one defect, as a merge may leave them, are taken together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/known_defect.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

// True for a text that begins like a baseline file, whatever its version.
bool IsBaseline(std::string_view text);

std::string BaselineText(std::vector<KnownDefect> defects);

// `name` stands in the error.
Result<std::vector<KnownDefect>> ParseBaseline(std::string_view text, const std::string& name);

}  // namespace cuaudit::harness
