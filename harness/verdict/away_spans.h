// SPDX-License-Identifier: MIT
// away_spans.h: the parts of a thread's run in which a function works in another context than its caller's, and how deep in the calls that
// function is.
//
//   Owns      plain values. Calls are numbers of the run's calls (Facts::calls).
//
// A change that is not undone there leaves the context of that function. When the function made the change itself, it goes on to yet
// another context, or puts its caller's back: it owes nothing. When a function that it called made the change, that one returned in another
// context than it was called in.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "harness/verdict/judge.h"

namespace cuaudit::harness {

inline constexpr std::size_t kNoCall = std::numeric_limits<std::size_t>::max();

struct Away {
  std::size_t from = kNoCall;                         // the change; kNoCall: nobody knows of which function
  std::size_t until = kNoCall;                        // the first call after the one that undoes it
  bool from_none = false;                             // no context was current before
  std::optional<std::size_t> callers = std::nullopt;  // of the function, once somebody asked
};

void DropBefore(std::size_t call, std::vector<Away>* all);

// The number of callers of a function, by the frame of a call from which it was called; 0 when the frame is unknown.
[[nodiscard]] std::size_t CallersFrom(const Evidence& run, std::size_t call, std::size_t level);

// The number of callers of the innermost function that is away; kNoCall when that is unknown, 0 for none. Where `only_from_none`, one that
// had a context before counts as unknown.
[[nodiscard]] std::size_t DeepestAway(const Evidence& run, std::vector<Away>* all, bool only_from_none);

}  // namespace cuaudit::harness
