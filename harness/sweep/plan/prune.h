// SPDX-License-Identifier: MIT
// prune.h: which faults are pruned because a fault in an equal state was tried. See call_state.h for states and unwinding.h for the rules.
#pragma once

#include <cstdint>

#include "harness/sweep/plan/call_state.h"

namespace cuaudit::harness {

enum class Prune : std::uint8_t {
  None,
  Second,  // second faults only: by exact state, and by the shape of the unwinding
  All,     // first faults, too; states are coarse, so a loop is tried for its first turns. Never for calls of an interpreter
};

constexpr StatesAre StatesFor(Prune prune) { return prune == Prune::All ? StatesAre::Coarse : StatesAre::Exact; }

}  // namespace cuaudit::harness
