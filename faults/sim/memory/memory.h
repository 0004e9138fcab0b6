// SPDX-License-Identifier: MIT
// memory.h: allocates and frees memory of every kind. chunks.h keeps each device's budget.
//
//   Owns      nothing; a range belongs to its context, or to the world where the driver says so.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    nullptr: the budget, the address space or the arena is exhausted.
//   Source    CUDA Driver API 13.0, Memory Management.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// Allocates device memory of `kind` in `context`. It is counted, and charged to the device unless a pool pays. Requires bytes > 0.
Range* TakeDevice(World& world, Context* context, std::uint64_t bytes, Kind kind) noexcept;
// Allocates memory that the host may access: managed (charged to no device) or pinned.
Range* TakeHost(World& world, Context* context, std::uint64_t bytes, Kind kind) noexcept;
// Allocates device addresses for bytes that lie at `where`. They are charged to no device.
Range* TakeElsewhere(World& world, Context* context, std::uint64_t bytes, Kind kind, char* where) noexcept;
// Adopt adds a range to its owner's list and to the world's tree; Forget removes it.
void Adopt(World& world, Range* range, Context* owner) noexcept;
void Forget(World& world, Range* range) noexcept;

// Frees memory of every kind, and what is bound to it: shares, advice, pools, imports, mappings.
//
//   Threads   the caller holds the world's lock.
//   Source    CUDA Driver API 13.0, Memory Management.

void GiveBack(World& world, Range* range) noexcept;
// A stream has reached a queued stream-ordered free.
void FinishFree(World& world, CUdeviceptr address, std::uint64_t allocation = 0) noexcept;
void FreeArray(World& world, Array* array) noexcept;
void FreeMipmappedArray(World& world, MipmappedArray* array) noexcept;
void ForgetExternal(World& world, Range* range) noexcept;
void FreeExternal(World& world, External* external) noexcept;

}  // namespace cuaudit::sim
