// SPDX-License-Identifier: MIT
// frames.h: the frames of a call stack in words, and which of them are worth showing.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "reports/run.h"

namespace cuaudit::report {

// True for the C and C++ runtime: a place in a program is not named by a function of theirs. `module` as in Frame: the file name without
// directory.
inline bool IsRuntimeModule(std::string_view module) {
  constexpr std::array<std::string_view, 12> kModules = {"libc.so.",   "libm.so.",      "libpthread.so.", "librt.so.",
                                                         "libdl.so.",  "ld-linux",      "libstdc++.so.",  "libgcc_s.so.",
                                                         "libc++.so.", "libc++abi.so.", "linux-vdso.so.", "linux-gate.so."};
  return std::any_of(kModules.begin(), kModules.end(), [module](std::string_view name) { return module.starts_with(name); });
}

// "Function file.c:12", "Function (module)", "module+0x1f30" or "code without a file", depending on what is known.
std::string Describe(const Frame& frame);

// Describes a place in one line: the innermost frame with a function name, followed by the innermost frame with a source line when that
// is another frame. A stack without any function name is described by its innermost frame.
std::string DescribeOrigin(const std::vector<Frame>& stack);

// At most 16 frames of a stack, innermost first, without the code of the C++ library that was compiled into the program. A stack of
// nothing else is not filtered.
std::vector<Frame> ShownFrames(const std::vector<Frame>& stack);

}  // namespace cuaudit::report
