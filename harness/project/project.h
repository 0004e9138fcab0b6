// SPDX-License-Identifier: MIT
// project.h: the cases of cuaudit.toml.
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

}  // namespace cuaudit::harness
