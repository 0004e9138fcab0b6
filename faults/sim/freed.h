// SPDX-License-Identifier: MIT
// freed.h: device memory that was given back, as long as nothing else lies at its address.
//
//   Owns      the world's list of the last such blocks; the oldest is forgotten for the newest.
//   Threads   the world's lock is held by every caller.
//   Units     bytes.
//   Errors    without room a block is not remembered: fewer findings, never a false one.
//   Faults    makes no driver calls. Without an on_misuse nothing is kept.
//   Source    ours.
#pragma once

#include "faults/driver/kinds.h"
#include "faults/sim/history.h"

namespace cuaudit::sim {

struct Range;

struct Freed {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  driver::Kind kind = driver::Kind::None;
  Trace death;
};

// The range, which cuMemFree or a stream-ordered free gives back now.
void RememberFreed(World& world, const Range* range) noexcept;
// What the address was part of; nullptr when something lives there, or so little behind it that the place before may be meant.
const Freed* FindFreed(const World& world, std::uint64_t address) noexcept;

}  // namespace cuaudit::sim
