// SPDX-License-Identifier: MIT
// require.h: what a target knows to be true of every input. The process ends where it is not, which is what a fuzzer looks for.
//
//   Owns      nothing.
//   Threads   safe.
//   Errors    one line on stderr with the place, then abort.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace cuaudit::fuzz {

inline void Require(bool holds, const char* what, const std::string& seen = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: does not hold: %s%s%s\n", file, line, what, seen.empty() ? "" : ": ", seen.c_str());
  std::abort();
}

}  // namespace cuaudit::fuzz
