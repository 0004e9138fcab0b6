// SPDX-License-Identifier: MIT
// chunks.h: the 2 MiB steps in which a device gives out memory. Small blocks share a chunk, and one of them keeps it from everybody else:
// a device may refuse what the sum of its free bytes would hold.
//
//   Owns      nothing; the counts lie in the world's arena.
//   Threads   the world's lock is held by every caller.
//   Units     bytes.
//   Errors    false: the device has no chunks left, or the books are full.
//   Faults    makes no driver calls.
//   Source    measured on an idle H200: 512 bytes take 2 MiB of cuMemGetInfo's free memory, 512 more and 1 MiB none, 3 MiB take 4, and
//             of four blocks in one chunk two give nothing back.
#pragma once

#include "faults/sim/world_state.h"

namespace cuaudit::sim {

bool ChargeChunks(World& world, int device, const Block* block) noexcept;
void DischargeChunks(World& world, const Block* block) noexcept;

}  // namespace cuaudit::sim
