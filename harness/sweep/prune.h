// SPDX-License-Identifier: MIT
// prune.h: which faults are left out because one in an equal state stands for them.
//
//   Threads   values.
//   Faults    makes no driver calls.
//   Source    call_state.h says what a state is, unwinding.h what stands for what.
#pragma once

#include <cstdint>

#include "harness/sweep/call_state.h"

namespace cuaudit::harness {

enum class Prune : std::uint8_t {
  None,
  Second,  // second faults only; states are exact
  All,  // first ones too, and states are coarse: a loop is tried for its first turns. Nothing that an interpreter or generated code calls
};

constexpr StatesAre StatesFor(Prune prune) { return prune == Prune::All ? StatesAre::Coarse : StatesAre::Exact; }

}  // namespace cuaudit::harness
