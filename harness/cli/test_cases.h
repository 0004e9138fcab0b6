// SPDX-License-Identifier: MIT
// test_cases.h: the cases of a cuaudit.toml, or the tests of a build as cases (`cuaudit audit --ctest BUILD`).
//
//   Errors    one line: BUILD is no folder with tests, or ctest cannot be run.
#pragma once

#include <vector>

#include "harness/options/options.h"
#include "harness/project/case_settings.h"

namespace cuaudit::harness {

// Asks `ctest` of PATH. The [defaults] of --config hold for the tests, if that file is there.
Result<std::vector<ProjectCase>> ReadTests(const Options& options);

// The cases of --config or --ctest, with the settings of CUAUDIT_AUDIT and of the command line over those of the files.
Result<std::vector<ProjectCase>> ReadCases(const Options& options);

}  // namespace cuaudit::harness
