// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/memory_node.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/memory/graph_memory.h"

namespace cuaudit::sim {
namespace {

bool IsDevice(const World& world, CUdevice device) { return device >= 0 && device < world.device_count; }

}  // namespace

CUresult api::GraphAddMemAllocNode(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count,
                                   CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  if (out == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Dependencies earlier(call.world);
  CUresult result = earlier.Resolve(handle, dependencies, count);
  Node* node = nullptr;
  if (result == CUDA_SUCCESS && earlier.graph()->IsChild()) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS) {
    result = AddAllocNode(call.world, earlier.graph(), earlier.nodes().data(), count, parameters, &node);
  }
  if (result == CUDA_SUCCESS) *out = ToHandle<CUgraphNode>(node);
  return result;
}

CUresult api::GraphAddMemFreeNode(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count,
                                  CUdeviceptr address) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Dependencies earlier(call.world);
  CUresult result = earlier.Resolve(handle, dependencies, count);
  Node* node = nullptr;
  if (result == CUDA_SUCCESS && earlier.graph()->IsChild()) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS) result = AddFreeNode(call.world, earlier.graph(), earlier.nodes().data(), count, address, &node);
  if (result == CUDA_SUCCESS) *out = ToHandle<CUgraphNode>(node);
  return result;
}

CUresult api::GraphMemAllocNodeGetParams(Call& call, CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  return ReadNode(call, handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &Work::alloc, out);
}

CUresult api::GraphMemFreeNodeGetParams(Call& call, CUgraphNode handle, CUdeviceptr* out) {
  return ReadNode(call, handle, CU_GRAPH_NODE_TYPE_MEM_FREE, &Work::address, out);
}

CUresult api::DeviceGraphMemTrim(Call& call, CUdevice device) {
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  TrimGraphMemory(call.world, device);
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetGraphMemAttribute(Call& call, CUdevice device, CUgraphMem_attribute attribute, void* value) {
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  const DeviceState& state = call.world.devices[device];
  const std::uint64_t numbers[] = {state.graph_used, state.graph_used_high, state.graph_reserved, state.graph_reserved_high};
  const std::size_t which = static_cast<std::size_t>(attribute);
  if (value == nullptr || which > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(value, &numbers[which], sizeof(numbers[which]));
  return CUDA_SUCCESS;
}

CUresult api::DeviceSetGraphMemAttribute(Call& call, CUdevice device, CUgraphMem_attribute attribute, void* value) {
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  DeviceState& state = call.world.devices[device];
  std::uint64_t number = 0;
  std::memcpy(&number, value, sizeof(number));
  if (number != 0) return CUDA_ERROR_INVALID_VALUE;  // a high watermark can only be reset
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    state.graph_used_high = state.graph_used;
  } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    state.graph_reserved_high = state.graph_reserved;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
