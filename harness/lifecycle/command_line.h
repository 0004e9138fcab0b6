// SPDX-License-Identifier: MIT
// command_line.h: the command line of this process for a shell, with the GoogleTest filter of the running test.
//
//   Threads   safe.
//   Errors    "./test" when the system does not provide the command line.
//   Source    /proc/self/cmdline.
#pragma once

#include <string>
#include <vector>

namespace cuaudit::harness {

// The words that started this process.
std::vector<std::string> CommandWords();

// The command line with the filter from SetTestFilter. With such a filter, the process's own options for choosing tests are left out.
std::string CommandLine();

// `filter` is "Suite.Name" of the running test, or empty when none runs. cuaudit/gtest.h calls this.
void SetTestFilter(const std::string& filter);

}  // namespace cuaudit::harness
