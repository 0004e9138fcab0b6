// SPDX-License-Identifier: MIT
// project.h: the cases of cuaudit.toml, and the tests of a CMake build as cases.
//
//   Threads   one thread.
//   Errors    one line: "FILE:LINE:COL: what is wrong, expected ...". Two cases of one name, a file that includes itself, and a project
//             without cases are errors, too.
//
//     include = ["memory/cuaudit.toml"]     # relative to this file
//
//     [defaults]                            # for all cases of this file and of the files that it includes
//     host = true
//
//     [case.pool]
//     command = ["./pool_test", "{n}"]      # runs in the folder of this file
//     cycles = [1, 10]
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/project/case_settings.h"

namespace cuaudit::harness {

// The cases in the order of the files. Settings come from the files alone.
Result<std::vector<ProjectCase>> ReadProject(const std::string& file);

// A case with the [defaults] of the file and without a name; with none where there is no such file.
Result<ProjectCase> ReadDefaults(const std::string& file);

// One answer per case: whether it is among `names` and has one of `tags`. Without names or tags all are. A name that no case has, and tags
// that leave nothing are errors.
Result<std::vector<bool>> SelectCases(std::span<const ProjectCase> cases, std::span<const std::string> names,
                                      std::span<const std::string> tags);

// The tests of a CMake build as cases, from what `ctest --show-only=json-v1` prints (ctest(1), "Show as JSON Object Model", version 1). An
// error is one line: the text is not what CTest writes, or it has no test that can run. In ctest_cases.cc.
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
