// SPDX-License-Identifier: MIT
// scope.h: what outlives a cycle on purpose.
//
//   Pinned    the gate holds one more reference of each primary context that the program retains, so that releasing the last own one
//             does not destroy, and so hide, what was leaked inside it.
//   Process   nothing is held: for programs whose runtime keeps things until exit.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>

namespace cuaudit::faults {

enum class Scope : std::uint8_t { Pinned, Process };

}  // namespace cuaudit::faults
