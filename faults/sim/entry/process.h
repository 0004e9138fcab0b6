// SPDX-License-Identifier: MIT
// process.h: what a fork and the exit of the process do to a world.
//
//   Threads   called without the world's lock, which any thread may have held at the fork.
//   Errors    UsableHere is false in a child forked after cuInit, and for a destroyed world; calls then return NOT_INITIALIZED.
//   Source    measured on an H200 (suites/contract, questions forked.* and exiting.*).
#pragma once

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

// Values of the mark in a world's first page.
inline constexpr std::uint32_t kWiped = 0;  // the kernel clears the page in a forked child
inline constexpr std::uint32_t kAlive = 1;
inline constexpr std::uint32_t kBeginning = 2;  // a thread of the child is deciding
inline constexpr std::uint32_t kDestroyed = 3;
inline constexpr std::uint32_t kRefused = 4;  // the parent had called cuInit before the fork

// False in a child that was forked after cuInit. If nobody had called cuInit, the world starts anew in the child, with its lock free.
bool UsableHere(World& world) noexcept;
// True in a child that was forked after cuInit, once UsableHere has answered false.
inline bool IsForkedChild(const World& world) noexcept { return world.alive->load(std::memory_order_acquire) == kRefused; }

}  // namespace cuaudit::sim
