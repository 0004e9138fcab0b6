// SPDX-License-Identifier: MIT
// function_frames.h: which function made several calls of a thread, by the return addresses of their call stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "faults/journal/record.h"
#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

inline constexpr std::size_t kNoLevel = std::numeric_limits<std::size_t>::max();

// True when the call was made while the function that `frame` called was running.
[[nodiscard]] bool IsWithin(const Evidence& run, const faults::Record& record, std::uint64_t frame);

// The innermost function that made two calls of a thread and all its calls in between, as the index of the frame that called it in the
// stack of the first one; kNoLevel for none. Both are numbers of calls of the run (Facts::calls).
[[nodiscard]] std::size_t SharedLevel(const Evidence& run, std::size_t first, std::size_t last);

// The end of the marked cycle in which the call was made, when the same thread marks it; null for none.
[[nodiscard]] const faults::Record* EndOfCycle(const Evidence& run, const faults::Record& call);

}  // namespace cuaudit::harness
