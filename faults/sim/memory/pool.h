// SPDX-License-Identifier: MIT
// pool.h: memory pools of every place and kind, pools of another process, the memory that graphs own, and the end of memory of every kind.
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

// Memory that graphs own. Its address is fixed when its node is made; its bytes live from a launch to a free.
//
//   Owns      the addresses. References are counted: allocation and free nodes, plans made from them, and the allocation while it lives.
//   Source    CUDA Driver API 13.0, cuDeviceGraphMemTrim.
//   Deviates  every node has an address of its own. Nodes whose lifetimes cannot overlap do not share one.

struct Graph;

enum class Freer : std::uint8_t { Nobody, OwnGraph, OtherGraph };

struct GraphMemory {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  int device = 0;
  std::uint32_t references = 1;
  std::uint32_t live = 0;  // allocations that launches asked for and that no free has undone yet
  bool claimed = false;    // by the current launch call (Claim); the next two fields then hold the earlier state
  bool newly_counted = false;
  bool was_freeing = false;
  bool counted = false;  // counted in the device's graph memory, which only a trim or the end of the nodes reduces
  Freer freer = Freer::Nobody;
  Graph* graph = nullptr;  // of the allocation node; null once that is destroyed
  Block* block = nullptr;
  Range* range = nullptr;  // null while not live
};

GraphMemory* FindGraphMemory(const World& world, CUdeviceptr address) noexcept;
// True if the bytes belong to a graph, allocated or not.
bool IsGraphMemory(const World& world, std::uint64_t address, std::uint64_t bytes) noexcept;
void DropGraphMemory(World& world, GraphMemory* memory) noexcept;

// Memory that graphs reserve is charged to the device, in steps; freed memory stays reserved until it is trimmed.
// False: the device has no more.
bool ReserveGraphMemory(World& world, int ordinal, std::uint64_t used) noexcept;
// Returns the cached memory to the device.
void TrimGraphMemory(World& world, int device) noexcept;
// A free of a live range has been reached. `all`: the range ends whatever is still queued.
void ReleaseGraphRange(World& world, Range* range, bool all) noexcept;

// Frees memory of every kind, of a pool or not, and what is bound to it: shares, advice, pools, imports, mappings.
void GiveBack(World& world, Range* range) noexcept;
// A stream has reached a queued stream-ordered free.
void FinishFree(World& world, CUdeviceptr address, std::uint64_t allocation = 0) noexcept;
void FreeArray(World& world, Array* array) noexcept;
void FreeMipmappedArray(World& world, MipmappedArray* array) noexcept;
void ForgetExternal(World& world, Range* range) noexcept;
void FreeExternal(World& world, External* external) noexcept;

}  // namespace cuaudit::sim
