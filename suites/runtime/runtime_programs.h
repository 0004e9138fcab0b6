// SPDX-License-Identifier: MIT
// runtime_programs.h: where the programs of this room lie, and how cuaudit runs one with its kernels.
//
//   Threads   one thread.
//   Errors    a program that was not built (no nvcc) has no path: its test is skipped, and says so.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e {

inline std::string RuntimeProgram(const std::string& name) { return std::string(CUAUDIT_RUNTIME_PROGRAMS) + "/" + name; }
inline bool Built(const std::string& name) { return access(RuntimeProgram(name).c_str(), X_OK) == 0; }

inline std::string KernelsFile() { return RuntimeProgram("libruntime_kernels.so"); }
inline std::vector<std::string> WithKernels(const std::string& command) { return {command, "--kernels=" + KernelsFile()}; }

#define CUAUDIT_NEEDS(name) \
  if (!Built(name)) GTEST_SKIP() << name << " was not built: no nvcc"

}  // namespace cuaudit::e2e
