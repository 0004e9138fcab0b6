// SPDX-License-Identifier: MIT
// fork_and_exit.h: what a fork and the exit of the process do to a world.
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

// The few calls that a forked child can make with a stream of its parent. All other calls answer NOT_INITIALIZED there.
//
//   Threads   may be called by any thread of the child. When a thread of the parent held the world's lock at the fork, the answer is
//             NOT_INITIALIZED.
//   Source    measured on an H100 and an H200 (suites/contract, questions forked.*). What was not measured (default streams, captured
//             streams, streams of lost contexts, a wait for unfinished work) is refused.

// NOT_READY when a host function or a wait for a value was queued at the fork, because nobody can finish it here. A device finishes other
// work without the child.
CUresult QueryInherited(World& world, CUstream stream) noexcept;
CUresult SynchronizeInherited(World& world, CUstream stream) noexcept;
// SUCCESS, and the function never runs: the thread of the driver that would call it is the parent's.
CUresult LaunchInherited(World& world, CUstream stream) noexcept;

}  // namespace cuaudit::sim
