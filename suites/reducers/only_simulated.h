// SPDX-License-Identifier: MIT
// only_simulated.h: for what only the simulated driver can judge: on a genuine one the test is skipped, with the reason.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace cuaudit::reducers {

inline bool GenuineDriverIsAskedFor() {
  const char* const options = std::getenv("CUAUDIT_OPTIONS");
  const std::string_view text = options == nullptr ? "" : options;
  return text.find("driver=real") != text.npos || text.find("driver=auto") != text.npos;
}

// An access that nothing orders before the next owner's, memory given back under a queued access.
inline constexpr const char* kOrder = "no genuine driver tells which operations nothing orders: memory is spoiled, or is not, in silence";

}  // namespace cuaudit::reducers

#define CUAUDIT_ONLY_SIMULATED(reason) \
  if (::cuaudit::reducers::GenuineDriverIsAskedFor()) GTEST_SKIP() << (reason)
