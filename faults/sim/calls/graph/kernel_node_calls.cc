// SPDX-License-Identifier: MIT
// Attributes of kernel nodes.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/kernel/launch.h"

namespace cuaudit::sim {
namespace {

// Attributes that a kernel node keeps, by their numbers: some have no name in older toolkits.
bool IsKept(unsigned id) {
  constexpr unsigned kKept = 1U << 1 | 1U << 2 | 1U << 4 | 1U << 5 | 1U << 8 | 1U << 9 | 1U << 10 | 1U << 11 | 1U << 13 | 1U << 14;
  return id < 32 && (kKept >> id & 1U) != 0;
}

Node* FindKernel(Call& call, CUgraphNode handle) { return FindNode(call, handle, CU_GRAPH_NODE_TYPE_KERNEL); }

const CUlaunchAttribute* Kept(const Node* node, CUlaunchAttributeID id) {
  for (const CUlaunchAttribute& attribute : node->attributes) {
    if (attribute.id == id) return &attribute;
  }
  return nullptr;
}

bool Keep(World& world, Node* node, CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) node->work.cooperative = value.cooperative != 0;
  for (CUlaunchAttribute& attribute : node->attributes) {
    if (attribute.id != id) continue;
    attribute.value = value;
    return true;
  }
  CUlaunchAttribute attribute{};
  attribute.id = id;
  attribute.value = value;
  return node->attributes.Push(world.arena, attribute);
}

}  // namespace

CUresult api::GraphKernelNodeGetAttribute(Call& call, CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue* value) {
  const Node* const node = FindKernel(call, handle);
  if (node == nullptr || value == nullptr || !IsKept(static_cast<unsigned>(id))) return CUDA_ERROR_INVALID_VALUE;
  const CUlaunchAttribute* const kept = Kept(node, id);
  if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
    *value = CUlaunchAttributeValue{};
    value->deviceUpdatableKernelNode = {node->updatable ? 1 : 0, node->updatable ? ToHandle<CUgraphDeviceNode>(node) : nullptr};
  } else if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
    value->cooperative = node->work.cooperative ? 1 : 0;
  } else if (kept != nullptr) {
    *value = kept->value;
  } else {
    *value = CUlaunchAttributeValue{};
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value->memSyncDomainMap.remote = 1;
  }
  return CUDA_SUCCESS;
}

CUresult api::GraphKernelNodeSetAttribute(Call& call, CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue* value) {
  Node* const node = FindKernel(call, handle);
  if (node == nullptr || value == nullptr || !IsKept(static_cast<unsigned>(id))) return CUDA_ERROR_INVALID_VALUE;
  if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    const CUresult result = CheckCluster(call, node->work.kernel, *value);
    if (result != CUDA_SUCCESS) return result;
  }
  if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) return SetUpdatable(node, const_cast<CUkernelNodeAttrValue*>(value));
  return Keep(call.world, node, id, *value) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult api::GraphKernelNodeCopyAttributes(Call& call, CUgraphNode to_handle, CUgraphNode from_handle) {
  Node* const to = FindKernel(call, to_handle);
  const Node* const from = FindKernel(call, from_handle);
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (to->updatable || from->updatable) return CUDA_ERROR_INVALID_VALUE;
  if (to == from) return CUDA_SUCCESS;
  to->work.cooperative = from->work.cooperative;
  return to->attributes.Assign(call.world.arena, from->attributes.begin(), from->attributes.size()) ? CUDA_SUCCESS
                                                                                                    : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace cuaudit::sim
