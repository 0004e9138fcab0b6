// SPDX-License-Identifier: MIT
// only_simulated.h: why a test of a reducer is skipped on a genuine driver.
#pragma once

namespace cuaudit::reducers {

// An access that nothing orders before the next owner's, memory given back under a queued access.
inline constexpr const char* kOrder = "no genuine driver tells which operations nothing orders: memory is spoiled, or is not, in silence";

}  // namespace cuaudit::reducers
