// SPDX-License-Identifier: MIT
// runtime_modules.h: which objects are the C and C++ runtime. A place in a program is not named by a function of theirs.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace cuaudit::report {

// `module` as in Frame: the file name without directory.
inline bool IsRuntimeModule(std::string_view module) {
  constexpr std::array<std::string_view, 12> kModules = {"libc.so.",   "libm.so.",      "libpthread.so.", "librt.so.",
                                                         "libdl.so.",  "ld-linux",      "libstdc++.so.",  "libgcc_s.so.",
                                                         "libc++.so.", "libc++abi.so.", "linux-vdso.so.", "linux-gate.so."};
  return std::any_of(kModules.begin(), kModules.end(), [module](std::string_view name) { return module.starts_with(name); });
}

}  // namespace cuaudit::report
