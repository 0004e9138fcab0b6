// SPDX-License-Identifier: MIT
// freeing.h: frees memory of every kind, and what is bound to it: shares, advice, pools, imports, mappings.
//
//   Threads   the caller holds the world's lock.
//   Source    CUDA Driver API 13.0, Memory Management.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

void GiveBack(World& world, Range* range) noexcept;
// A stream has reached a queued stream-ordered free.
void FinishFree(World& world, CUdeviceptr address, std::uint64_t allocation = 0) noexcept;
void FreeArray(World& world, Array* array) noexcept;
void FreeMipmappedArray(World& world, MipmappedArray* array) noexcept;
void ForgetExternal(World& world, Range* range) noexcept;
void FreeExternal(World& world, External* external) noexcept;

}  // namespace cuaudit::sim
