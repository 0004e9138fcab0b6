// SPDX-License-Identifier: MIT
// away.h: functions that work in another context than their callers' for a part of a thread's run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

inline constexpr std::size_t kNoCall = std::numeric_limits<std::size_t>::max();

// A part of a thread's run in which a function works in another context than its caller's. Calls are numbers of the run's calls
// (Facts::calls).
//
// A change that is not undone there leaves the context of that function. When the function made the change itself, it goes on to yet
// another context, or puts its caller's back: it owes nothing. When a function that it called made the change, that one returned in another
// context than it was called in.
struct Away {
  std::size_t from = kNoCall;                         // the change; kNoCall: nobody knows of which function
  std::size_t until = kNoCall;                        // the first call after the one that undoes it
  bool from_none = false;                             // no context was current before
  std::optional<std::uint64_t> frame = std::nullopt;  // that called the function, once somebody asked; 0: unknown
};

void DropBefore(std::size_t call, std::vector<Away>* all);

// The innermost function of `all` that is away at a call, as the index of the frame that called it in the stack of that call: a function
// that was called from a frame with a smaller index runs within it. 0 when that is unknown. Where `only_from_none`, one that had a context
// before counts as unknown. The frame is looked for and not counted to, because call stacks are cut at --stacks frames.
[[nodiscard]] std::size_t InnermostAway(const Evidence& run, std::size_t call, std::vector<Away>* all, bool only_from_none);

}  // namespace cuaudit::harness
