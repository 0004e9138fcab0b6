// SPDX-License-Identifier: MIT
// chunks.h: device memory is charged in chunks of 2 MiB. Small blocks share a chunk, and one live block keeps the whole chunk charged, so a
// device may refuse an allocation that the sum of its free bytes could hold.
//
//   Owns      nothing; the counts lie in the world's arena.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    false when the device has no chunks left or the arena is full.
//   Source    measured on an idle H200 with cuMemGetInfo: 512 bytes take 2 MiB of free memory, 512 more and then 1 MiB take none, 3 MiB
//             take 4. Freeing two of four blocks in one chunk gives nothing back.
#pragma once

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

bool ChargeChunks(World& world, int device, const Block* block) noexcept;
void DischargeChunks(World& world, const Block* block) noexcept;

// What does not come in chunks: false when the device has fewer bytes left.
bool Charge(World& world, int device, std::uint64_t bytes) noexcept;
void Discharge(World& world, int device, std::uint64_t bytes) noexcept;

}  // namespace cuaudit::sim
