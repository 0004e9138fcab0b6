// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/graph/memory_node.h"

#include "faults/sim/graph/capture.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {
namespace {

GraphMemory* MakeMemory(World& world, std::uint64_t bytes, int device, Graph* graph) {
  GraphMemory* const memory = world.arena.New<GraphMemory>();
  if (memory == nullptr) return nullptr;
  memory->block = bytes > world.devices[device].total ? nullptr : world.device_memory.Allocate(world.arena, bytes);
  if (memory->block == nullptr || !world.graph_memory.Push(world.arena, memory)) {
    if (memory->block != nullptr) world.device_memory.Free(world.arena, memory->block);
    world.arena.Delete(memory);
    return nullptr;
  }
  memory->address = memory->block->base;
  memory->size = bytes;
  memory->device = device;
  memory->graph = graph;
  return memory;
}

CUresult Allocate(World& world, Stream* stream, GraphMemory* memory) {
  if (memory->live++ != 0) return CUDA_SUCCESS;
  const DeviceState& device = world.devices[memory->device];
  const std::uint64_t charged = (memory->size + 511) / 512 * 512;
  Range* const range = world.arena.New<Range>();
  if (range == nullptr || !ReserveGraphMemory(world, memory->device, device.graph_used + (memory->counted ? 0 : charged))) {
    if (range != nullptr) world.arena.Delete(range);
    memory->live = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  range->base = memory->address;
  range->size = range->asked = memory->size;
  range->bytes = world.device_memory.Bytes(memory->address);
  range->kind = Kind::StreamOrderedMemory;
  range->on_device = true;
  range->graph = memory;
  memory->range = range;
  memory->counted = true;
  ++memory->references;
  Adopt(world, range, nullptr);
  ObserveAllocation(world, stream, range);
  return CUDA_SUCCESS;
}

bool Holds(const Graph* graph, bool (*wanted)(const Node*)) {
  for (const Node* const node : graph->nodes) {
    if (wanted(node) || (node->work.type == WorkType::Child && Holds(node->work.child, wanted))) return true;
  }
  return false;
}

}  // namespace

bool OwnsMemory(const Graph* graph) noexcept {
  return Holds(graph,
               [](const Node* node) { return node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE; });
}

bool HasConditional(const Graph* graph) noexcept {
  return Holds(graph, [](const Node* node) { return node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL; });
}

bool HasUpdatable(const Graph* graph) noexcept {
  return Holds(graph, [](const Node* node) { return node->updatable; });
}

CUresult AddAllocNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters,
                      Node** node) noexcept {
  const CUmemPoolProps& pool = parameters->poolProps;
  if (parameters->bytesize == 0 || pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE || pool.location.id < 0 || pool.location.id >= world.device_count) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  if (parameters->accessDescCount != 0 && parameters->accessDescs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphMemory* const memory = MakeMemory(world, parameters->bytesize, pool.location.id, graph);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Work work;
  work.type = WorkType::Alloc;
  work.memory = memory;
  work.alloc = *parameters;
  work.alloc.dptr = memory->address;
  work.alloc.accessDescs = nullptr;  // not kept: every device of the world can access the memory
  work.alloc.accessDescCount = 0;
  *node = AddNode(world, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEM_ALLOC, work);
  if (*node != nullptr) parameters->dptr = memory->address;
  DropGraphMemory(world, memory);  // the node shares it
  return *node == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult AddFreeNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUdeviceptr address, Node** node) noexcept {
  GraphMemory* const memory = address == 0 ? nullptr : FindGraphMemory(world, address);
  if (memory == nullptr || memory->graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Freer freer = memory->graph == graph ? Freer::OwnGraph : Freer::OtherGraph;
  if (memory->freer == Freer::OwnGraph || (memory->freer == Freer::OtherGraph && freer == Freer::OwnGraph)) return CUDA_ERROR_INVALID_VALUE;
  for (const Node* const other : graph->nodes) {
    if (other->work.type == WorkType::Free && other->work.address == address) return CUDA_ERROR_INVALID_VALUE;
  }
  Work work;
  work.type = WorkType::Free;
  work.memory = memory;
  work.address = address;
  *node = AddNode(world, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEM_FREE, work);
  if (*node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  memory->freer = freer;
  return CUDA_SUCCESS;
}

CUresult Claim::Take(const Plan& plan, bool again) noexcept {
  for (const Step& step : plan.steps) {
    const GraphMemory* const memory = step.work.memory;
    if (memory == nullptr) continue;
    const bool allocated = memory->range != nullptr && !memory->range->freeing;
    if (step.work.type == WorkType::Alloc && memory->freer != Freer::OwnGraph && allocated && !again) return CUDA_ERROR_INVALID_VALUE;
    if (step.work.type == WorkType::Free && memory->freer == Freer::OtherGraph && !allocated) return CUDA_ERROR_INVALID_VALUE;
  }
  plan_ = &plan;
  for (int i = 0; i < world_.device_count; ++i) {
    const DeviceState& device = world_.devices[i];
    books_[i] = {device.graph_used, device.graph_used_high, device.graph_reserved, device.graph_reserved_high};
  }
  for (const Step& step : plan.steps) {
    GraphMemory* const memory = step.work.memory;
    if (memory == nullptr || step.work.type != WorkType::Alloc) continue;
    const bool live = memory->range != nullptr;
    if (memory->freer != Freer::OwnGraph && live && !memory->range->freeing) continue;  // freed and taken again
    const bool counted = memory->counted;
    const CUresult result = Allocate(world_, stream_, memory);
    if (result != CUDA_SUCCESS) return result;
    memory->claimed = true;
    memory->newly_counted = !counted;
    memory->was_freeing = live && memory->range->freeing;
    memory->range->freeing = false;
  }
  return CUDA_SUCCESS;
}

void Claim::Keep() noexcept {
  for (const Step& step : plan_->steps) {
    GraphMemory* const memory = step.work.memory;
    if (memory == nullptr) continue;
    if (step.work.type == WorkType::Free && memory->range != nullptr) memory->range->freeing = true;
    memory->claimed = false;
  }
  plan_ = nullptr;
}

// Nothing was released meanwhile, so the saved counts are still right.
Claim::~Claim() {
  if (plan_ == nullptr) return;
  for (const Step& step : plan_->steps) {
    GraphMemory* const memory = step.work.memory;
    if (memory == nullptr || !memory->claimed) continue;
    memory->claimed = false;
    memory->range->freeing = memory->was_freeing;
    if (memory->newly_counted) memory->counted = false;
    ReleaseGraphRange(world_, memory->range, false);
  }
  for (int i = 0; i < world_.device_count; ++i) {
    DeviceState& device = world_.devices[i];
    if (device.graph_reserved > books_[i].reserved) Discharge(world_, i, device.graph_reserved - books_[i].reserved);
    device.graph_used = books_[i].used;
    device.graph_used_high = books_[i].used_high;
    device.graph_reserved = books_[i].reserved;
    device.graph_reserved_high = books_[i].reserved_high;
  }
}

CUresult CaptureAlloc(Call& call, Stream* stream, const Pool* pool, std::size_t bytes, CUdeviceptr* address) noexcept {
  if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  parameters.poolProps = pool->properties;
  parameters.bytesize = bytes;
  Node* node = nullptr;
  const CUresult result =
      AddAllocNode(call.world, stream->capture->graph, stream->capture_tips.data(), stream->capture_tips.size(), &parameters, &node);
  if (result != CUDA_SUCCESS) return result;
  *address = parameters.dptr;
  return MoveTip(call.world, stream, node);
}

CUresult CaptureFree(Call& call, Stream* stream, CUdeviceptr address) noexcept {
  if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Node* node = nullptr;
  const CUresult result =
      AddFreeNode(call.world, stream->capture->graph, stream->capture_tips.data(), stream->capture_tips.size(), address, &node);
  return result == CUDA_SUCCESS ? MoveTip(call.world, stream, node) : result;
}

}  // namespace cuaudit::sim
