// SPDX-License-Identifier: MIT
// process.h: what a fork and an exit of the process do to a world.
//
//   Owns      nothing.
//   Threads   called without the world's lock: after a fork it may be anybody's.
//   Errors    UsableHere is false in a child forked after cuInit, and for a destroyed world; calls then answer NOT_INITIALIZED.
//   Faults    makes no driver calls.
//   Source    measured on an H200, suites/contract: forked.*, exiting.*.
#pragma once

#include "faults/sim/world_state.h"

namespace cuaudit::sim {

// What the first page of a world says.
inline constexpr std::uint32_t kWiped = 0;  // by a fork
inline constexpr std::uint32_t kAlive = 1;
inline constexpr std::uint32_t kBeginning = 2;  // one thread of a child is at it
inline constexpr std::uint32_t kDestroyed = 3;
inline constexpr std::uint32_t kRefused = 4;  // a child of a process that had initialised it

// False in a child that was forked after cuInit. A world that nobody had initialised begins anew there, its lock
// free.
bool UsableHere(World& world) noexcept;

}  // namespace cuaudit::sim
