// SPDX-License-Identifier: MIT
// graph_memory.h: memory that graphs own. Its address is fixed when its node is made; its bytes live from a launch to a free.
//
//   Owns      the addresses. References are counted: allocation and free nodes, plans made from them, and the allocation while it lives.
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    nullptr when address space or arena are full; INVALID_VALUE for what the driver refuses.
//   Source    CUDA Driver API 13.0, cuGraphAddMemAllocNode, cuDeviceGraphMemTrim.
//   Deviates  every node has an address of its own. Nodes whose lifetimes cannot overlap do not share one.
#pragma once

#include "faults/sim/plan.h"

namespace cuaudit::sim {

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

// Adds an allocation node and sets parameters->dptr. Used by the graph calls and by capture.
CUresult AddAllocNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters,
                      Node** node) noexcept;
CUresult AddFreeNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUdeviceptr address, Node** node) noexcept;
GraphMemory* FindGraphMemory(const World& world, CUdeviceptr address) noexcept;
// True if the bytes belong to a graph, allocated or not.
bool IsGraphMemory(const World& world, std::uint64_t address, std::uint64_t bytes) noexcept;
void DropGraphMemory(World& world, GraphMemory* memory) noexcept;

// OwnsMemory and HasConditional forbid cloning, OwnsMemory forbids removing nodes and edges, and all three allow one executable at a time.
bool OwnsMemory(const Graph* graph) noexcept;
bool HasConditional(const Graph* graph) noexcept;
bool HasUpdatable(const Graph* graph) noexcept;

// Applies a launch's allocations and frees during the call: allocations before the launch is queued, frees after. The destructor undoes a
// claim that was not kept.
class Claim {
 public:
  Claim(World& world, Stream* stream) noexcept : world_(world), stream_(stream) {}
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  // INVALID_VALUE when memory to be allocated still is, or memory to be freed is not. `again`: memory that is still allocated is freed and
  // allocated again.
  CUresult Take(const Plan& plan, bool again) noexcept;
  void Keep() noexcept;

 private:
  struct Books {
    std::uint64_t used, used_high, reserved, reserved_high;
  };
  World& world_;
  Stream* stream_;
  const Plan* plan_ = nullptr;
  Books books_[kMaxDevices] = {};
};
// Returns the cached memory to the device.
void TrimGraphMemory(World& world, int device) noexcept;
// A free of a live range has been reached. `all`: the range ends whatever is still queued.
void ReleaseGraphRange(World& world, Range* range, bool all) noexcept;

// While a stream is captured, cuMemAllocAsync and cuMemFreeAsync add nodes.
CUresult CaptureAlloc(Call& call, Stream* stream, const Pool* pool, std::size_t bytes, CUdeviceptr* address) noexcept;
CUresult CaptureFree(Call& call, Stream* stream, CUdeviceptr address) noexcept;

}  // namespace cuaudit::sim
