// SPDX-License-Identifier: MIT
// refusals.h: the lines of log about refused calls, in this driver's own words: "cuMemAlloc_v2 answers CUDA_ERROR_INVALID_VALUE".
//
//   Threads   the caller holds the world's lock.
//   Errors    a line that is too long is cut.
//   Source    CUDA Driver API 13.0, Error Log Management Functions.
#pragma once

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

inline constexpr std::size_t kLongestLine = 128;  // with its end

// Writes the line, without a line break, and returns its length. `line` has room for kLongestLine characters.
std::size_t WriteRefusal(const RefusedCall& refusal, char* line) noexcept;

}  // namespace cuaudit::sim
