// SPDX-License-Identifier: MIT
// activation.h: which function was running both when one call was made and when another was.
//
//   Errors    none. Stacks that share no frame have no common activation.
//
// Two stacks of one thread have the outer frames of every function that was running at both times in common, down to the same line. The
// innermost such function may have moved on to another line: it is the one that made, directly or not, both calls.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "reports/run.h"

namespace cuaudit::harness {

using Stack = std::vector<report::Frame>;  // innermost frame first

// Indices of the frames of one function in two stacks.
struct Common {
  std::size_t in_a = 0;
  std::size_t in_b = 0;
};

// The innermost function that both stacks were in. A stack may be cut off at its outer end. Recursion counts as running on.
std::optional<Common> CommonActivation(const Stack& a, const Stack& b);

// Index in `later` of the innermost function that was running since the call with the stack `earlier`; the size when there is none. A
// function that makes the same call again without a way back to it has been left in between.
std::size_t RunningSince(const Stack& earlier, const Stack& later);

// True when both frames are in the same function. A function without a name is known by where it begins.
bool SameFunction(const report::Frame& a, const report::Frame& b);

// True when both frames are at the same line of the same function.
bool SamePlace(const report::Frame& a, const report::Frame& b);

}  // namespace cuaudit::harness
