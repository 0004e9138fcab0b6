// SPDX-License-Identifier: MIT
// graph_memory.h: memory that graphs own. Its address is fixed when its node is made; its bytes live from a launch to a free.
//
//   Owns      the addresses. References are counted: allocation and free nodes, plans made from them, and the allocation while it lives.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Source    CUDA Driver API 13.0, cuDeviceGraphMemTrim.
//   Deviates  every node has an address of its own. Nodes whose lifetimes cannot overlap do not share one.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

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

}  // namespace cuaudit::sim
