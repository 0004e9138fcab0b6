// SPDX-License-Identifier: MIT
// pool.h: pools of every place and kind, and those of another process.
//
//   Owns      nothing; pools are the world's. Of each place there is a default pool, made when somebody asks for it.
//   Threads   the world's lock is held by every caller.
//   Units     bytes. `used` counts what clients asked for, `occupied` what that takes, `reserved` grows by 32 MiB.
//   Errors    nullptr: no memory, no room in the books, or no such place.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Stream Ordered Memory Allocator; numbers as an H200 answers.
#pragma once

#include "faults/sim/call.h"

namespace cuaudit::sim {

// Which pool is the place's.
struct PoolsOf {
  Pool** standard = nullptr;  // its default pool, null until somebody asks
  Pool** current = nullptr;   // null there: the default one
};
// Null pointers: no such place or kind.
PoolsOf FindPools(World& world, const CUmemLocation& location, CUmemAllocationType type) noexcept;

// INVALID_VALUE for what no pool can be.
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

// Memory of the pool, which grows for it; null: there is no room now.
Range* TakeFromPool(World& world, Context* context, Pool* pool, std::uint64_t bytes) noexcept;

}  // namespace cuaudit::sim
