// SPDX-License-Identifier: MIT
// memory_node.h: graph nodes that allocate and free memory, and what a launch does with it. pool.h has the memory.
//
//   Threads   the caller holds the world's lock.
//   Units     bytes.
//   Errors    INVALID_VALUE for what the driver refuses, OUT_OF_MEMORY when address space, device or arena are full.
//   Source    CUDA Driver API 13.0, cuGraphAddMemAllocNode.
#pragma once

#include "faults/sim/graph/executable.h"

namespace cuaudit::sim {

// Adds an allocation node and sets parameters->dptr. Used by the graph calls and by capture.
CUresult AddAllocNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters,
                      Node** node) noexcept;
CUresult AddFreeNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUdeviceptr address, Node** node) noexcept;
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

// While a stream is captured, cuMemAllocAsync and cuMemFreeAsync add nodes.
CUresult CaptureAlloc(Call& call, Stream* stream, const Pool* pool, std::size_t bytes, CUdeviceptr* address) noexcept;
CUresult CaptureFree(Call& call, Stream* stream, CUdeviceptr address) noexcept;

}  // namespace cuaudit::sim
