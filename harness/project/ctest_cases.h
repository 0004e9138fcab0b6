// SPDX-License-Identifier: MIT
// ctest_cases.h: the tests of a CMake build as cases: `ctest --show-only=json-v1`.
//
//   Errors    one line: the text is not what CTest writes, or it has no test that can run.
//   Source    ctest(1), "Show as JSON Object Model", version 1.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/project/case_settings.h"

namespace cuaudit::harness {

struct CtestCases {
  std::vector<ProjectCase> cases;
  std::size_t left_out = 0;   // tests that are disabled or not built
  std::size_t will_fail = 0;  // tests that pass when their program fails, so that a run without faults proves nothing
  std::size_t resources = 0;  // cases whose test has RESOURCE_GROUPS: nothing is reserved for them
};

// Labels become tags; command, WORKING_DIRECTORY, ENVIRONMENT and TIMEOUT are those of the test; a test with RUN_SERIAL, RESOURCE_LOCK,
// DEPENDS or FIXTURES_REQUIRED has `jobs = 1`, so that its cases are not carried out beside others; everything else comes from `defaults`.
// In names '_' stands for what a name of a case may not have; a name that is cut, or that several tests would have, ends in a number made
// of the test's whole name. `build` is named in errors and is the place of the cases.
Result<CtestCases> CasesOfCtest(std::string_view json, const std::string& build, const ProjectCase& defaults);

}  // namespace cuaudit::harness
