// SPDX-License-Identifier: MIT
// memory.h: taking and giving back memory of every kind, and the device's budget.
//
//   Owns      nothing; ranges belong to their context, or to the world where the driver says so.
//   Threads   the world's lock is held by every caller.
//   Units     bytes.
//   Errors    nullptr: the budget, the address space or the books are exhausted.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Memory Management.
#pragma once

#include "faults/sim/call.h"

namespace cuaudit::sim {

// Device memory of `kind` in `context`, counted and, but for a pool's, charged. bytes > 0.
Range* TakeDevice(World& world, Context* context, std::uint64_t bytes, Kind kind) noexcept;
// Memory the host may touch: managed (charged to no device) or pinned.
Range* TakeHost(World& world, Context* context, std::uint64_t bytes, Kind kind) noexcept;
// Device addresses for bytes that lie at `where` and are charged to nobody.
Range* TakeElsewhere(World& world, Context* context, std::uint64_t bytes, Kind kind, char* where) noexcept;
void GiveBack(World& world, Range* range) noexcept;
// Links a range into its owner's list and the books.
void Adopt(World& world, Range* range, Context* owner) noexcept;
void Forget(World& world, Range* range) noexcept;

// A queued stream-ordered free has been reached.
void FinishFree(World& world, CUdeviceptr address, std::uint64_t allocation = 0) noexcept;
// Pools give back what their thresholds do not keep. Called when somebody has waited.
void TrimPools(World& world) noexcept;
bool Charge(World& world, int device, std::uint64_t bytes) noexcept;
void Discharge(World& world, int device, std::uint64_t bytes) noexcept;
void FreePool(World& world, Pool* pool) noexcept;
void ForgetExternal(World& world, Range* range) noexcept;
void FreeExternal(World& world, External* external) noexcept;
void FreeArray(World& world, Array* array) noexcept;
void FreeMipmappedArray(World& world, MipmappedArray* array) noexcept;

}  // namespace cuaudit::sim
