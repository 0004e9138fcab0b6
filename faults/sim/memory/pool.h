// SPDX-License-Identifier: MIT
// pool.h: memory pools of every place and kind, and pools of another process.
//
//   Owns      nothing; a pool belongs to the world. Each place has a default pool, made when it is first used.
//   Threads   the caller holds the world's lock.
//   Units     bytes. `used` counts what clients asked for, `occupied` what that takes, `reserved` grows by 32 MiB.
//   Errors    nullptr: no memory, a full arena, or no such place.
//   Source    CUDA Driver API 13.0, Stream Ordered Memory Allocator; numbers as an H200 answers.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// The default and the current pool of a place.
struct PoolsOf {
  Pool** standard = nullptr;  // the default pool; null until it is first used
  Pool** current = nullptr;   // *current null: the default pool is current
};
// Null pointers: there is no such place or kind.
PoolsOf FindPools(World& world, const CUmemLocation& location, CUmemAllocationType type) noexcept;

// INVALID_VALUE for properties that no pool can have.
CUresult CheckPool(World& world, const CUmemPoolProps* properties) noexcept;
Pool* MakePool(World& world, const CUmemPoolProps& properties, bool is_default) noexcept;
Pool* DefaultPool(World& world, const CUmemLocation& location, CUmemAllocationType type) noexcept;
inline bool IsOnDevice(const Pool* pool) noexcept {
  return pool->properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE && pool->properties.allocType == CU_MEM_ALLOCATION_TYPE_PINNED;
}
inline bool IsManaged(const Range* range) noexcept {
  return range->kind == Kind::ManagedMemory || range->managed_global ||
         (range->pool != nullptr && range->pool->properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED);
}

// Allocates from the pool, which grows if needed; null: there is no room now.
Range* TakeFromPool(World& world, Context* context, Pool* pool, std::uint64_t bytes) noexcept;

void FreePool(World& world, Pool* pool) noexcept;
// Called when the world is destroyed.
void ClosePools(World& world) noexcept;
// Pools return to the device what their release thresholds do not keep. Called after a wait.
void TrimPools(World& world) noexcept;

}  // namespace cuaudit::sim
