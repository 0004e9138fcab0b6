// SPDX-License-Identifier: MIT
// require.h: checks what a fuzz target knows to be true of every input. A failed check writes one line with its place to stderr and
// aborts, which a fuzzer looks for.
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
