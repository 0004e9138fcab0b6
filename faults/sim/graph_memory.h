// SPDX-License-Identifier: MIT
// graph_memory.h: memory that graphs own: its address is fixed when its node is made, its bytes live from a launch to a free.
//
//   Owns      the addresses. Counted: allocation and free nodes, the plans made from them, and the allocation itself while it lives.
//   Threads   the world's lock is held by every caller.
//   Units     bytes.
//   Errors    nullptr when address space or books are full; INVALID_VALUE for what the driver refuses.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuGraphAddMemAllocNode, cuDeviceGraphMemTrim.
//   Deviates  every node has an address of its own: nodes whose lifetimes cannot overlap do not share one.
#pragma once

#include "faults/sim/plan.h"

namespace cuaudit::sim {

enum class Freer : std::uint8_t { Nobody, OwnGraph, OtherGraph };

struct GraphMemory {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  int device = 0;
  std::uint32_t references = 1;
  std::uint32_t live = 0;  // allocations that launches have asked for and no free has undone yet
  bool claimed = false;    // by the launch call under way, see Claim; then the two that follow say what it was before
  bool newly_counted = false;
  bool was_freeing = false;
  bool counted = false;  // among the device's bytes of graphs, which only a trim or the end of the nodes takes back
  Freer freer = Freer::Nobody;
  Graph* graph = nullptr;  // of the allocation node, null once that is destroyed
  Block* block = nullptr;
  Range* range = nullptr;  // while live
};

// Adds an allocation node and sets parameters->dptr. Used by the calls and by capture.
CUresult AddAllocNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters,
                      Node** node) noexcept;
CUresult AddFreeNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUdeviceptr address, Node** node) noexcept;
GraphMemory* FindGraphMemory(const World& world, CUdeviceptr address) noexcept;
// Whether the bytes are a graph's, allocated or not.
bool IsGraphMemory(const World& world, std::uint64_t address, std::uint64_t bytes) noexcept;
void DropGraphMemory(World& world, GraphMemory* memory) noexcept;

// A graph with nodes that own something can be neither cloned nor taken apart, and has one executable at a time.
bool OwnsMemory(const Graph* graph) noexcept;
bool HasConditional(const Graph* graph) noexcept;
bool HasUpdatable(const Graph* graph) noexcept;

// What a launch does to the memory of its graph, settled by the call: allocations before the launch is queued, frees once it is. A
// claim that is not kept is undone.
class Claim {
 public:
  Claim(World& world, Stream* stream) noexcept : world_(world), stream_(stream) {}
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  // INVALID_VALUE: it is still allocated, or not allocated. `again`: what is still allocated is freed and allocated again.
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
// Gives back what is cached.
void TrimGraphMemory(World& world, int device) noexcept;
// One free of a live range has been reached, or the range goes whatever is queued (`all`).
void ReleaseGraphRange(World& world, Range* range, bool all) noexcept;

// While a stream is captured, stream-ordered allocation adds nodes.
CUresult CaptureAlloc(Call& call, Stream* stream, const Pool* pool, std::size_t bytes, CUdeviceptr* address) noexcept;
CUresult CaptureFree(Call& call, Stream* stream, CUdeviceptr address) noexcept;

}  // namespace cuaudit::sim
