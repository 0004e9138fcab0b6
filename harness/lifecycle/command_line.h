// SPDX-License-Identifier: MIT
// command_line.h: how this process was started, as a shell reads it, with the GoogleTest filter of the test that runs now.
//
//   Threads   safe.
//   Errors    "./test" where the system does not say.
//   Faults    makes no driver calls.
//   Source    /proc/self/cmdline.
#pragma once

#include <string>
#include <vector>

namespace cuaudit::harness {

// The words that started this process.
std::vector<std::string> CommandWords();

// `filter`: what --gtest_filter= is to be, set by SetTestFilter; then the process's own filters and repeats are left out.
std::string CommandLine();

// "Suite.Name" of the running test; empty: none runs. Told by whoever knows GoogleTest (cuaudit/gtest.h).
void SetTestFilter(const std::string& filter);

}  // namespace cuaudit::harness
