// SPDX-License-Identifier: MIT
// prune.h: which faults are pruned because a fault in an equal state was tried, and which second faults are tried all the same, so that an
// equality that hides something is noticed. See call_state.h for states and unwinding.h for the rules.
//
//   Errors    none.
//
// The budget of those tried all the same is spent in turns: every first fault gets one second fault before any gets two, and where it does
// not reach all of them, first faults are taken at equal distances. The positions on the way back take turns within each shape.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/sweep/plan/call_state.h"

namespace cuaudit::harness {

enum class Prune : std::uint8_t {
  None,
  Second,  // second faults only: by exact state, and by the shape of the unwinding
  All,     // first faults, too; states are coarse, so a loop is tried for its first turns. Never for calls of an interpreter
};

constexpr StatesAre StatesFor(Prune prune) { return prune == Prune::All ? StatesAre::Coarse : StatesAre::Exact; }

// A second fault that another one stands for.
struct StoodFor {
  std::uint64_t shape = 0;
  std::size_t after = 0;  // number of the first fault's trial
};

// One in twenty, but at least so many that a short sweep leaves out nothing.
constexpr std::size_t SpreadBudget(std::size_t stood_for, std::size_t at_least) { return std::max(at_least, stood_for / 20); }

// One answer per row: whether it is tried all the same. Rows of one trial stand together.
[[nodiscard]] std::vector<bool> Spread(std::span<const StoodFor> rows, std::size_t budget);

}  // namespace cuaudit::harness
