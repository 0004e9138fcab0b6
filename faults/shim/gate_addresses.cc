// SPDX-License-Identifier: MIT
// gate_addresses.cc: which device addresses a graph node is given, written as Argument records behind the call.
#define __CUDA_API_VERSION_INTERNAL
#include <string.h>

#include "faults/shim/gate.h"

namespace cuaudit::faults {
namespace {

using driver::CallId;

constexpr std::size_t kMaxKernelParameters = 64;

// Collects addresses and writes them, nine to a record.
struct Addresses {
  std::uint16_t flags = 0;  // ArgumentFlag
  std::uint64_t value[kMaxKernelParameters];
  std::size_t count = 0;
  void Add(std::uint64_t address) noexcept {
    if (address != 0 && count < kMaxKernelParameters) value[count++] = address;
  }
};

// Only eight-byte parameters can be addresses; the driver knows their sizes since 12.4 and older ones give none.
template <typename Info>
void AddKernelParameters(void* const* parameters, const Info& info, Addresses* addresses) noexcept {
  if (parameters == nullptr) return;
  for (std::size_t i = 0; i < kMaxKernelParameters; ++i) {
    std::size_t offset = 0;
    std::size_t size = 0;
    if (info(i, &offset, &size) != CUDA_SUCCESS) return;
    if (size != sizeof(std::uint64_t) || parameters[i] == nullptr) continue;
    std::uint64_t word = 0;
    memcpy(&word, parameters[i], sizeof(word));
    addresses->Add(word);
  }
}

void AddKernelNode(const driver::DriverRef& next, CUfunction function, CUkernel kernel, void* const* parameters,
                   Addresses* addresses) noexcept {
  if (function != nullptr) {
    AddKernelParameters(
        parameters, [&](std::size_t i, std::size_t* offset, std::size_t* size) { return next.FuncGetParamInfo(function, i, offset, size); },
        addresses);
  } else if (kernel != nullptr) {
    AddKernelParameters(
        parameters, [&](std::size_t i, std::size_t* offset, std::size_t* size) { return next.KernelGetParamInfo(kernel, i, offset, size); },
        addresses);
  }
}

void AddKernel(const CUDA_KERNEL_NODE_PARAMS_v1* node, const driver::DriverRef& next, Addresses* addresses) noexcept {
  if (node != nullptr) AddKernelNode(next, node->func, nullptr, node->kernelParams, addresses);
}

void AddKernel(const CUDA_KERNEL_NODE_PARAMS_v2* node, const driver::DriverRef& next, Addresses* addresses) noexcept {
  if (node != nullptr) AddKernelNode(next, node->func, node->kern, node->kernelParams, addresses);
}

void AddFill(const CUDA_MEMSET_NODE_PARAMS* fill, Addresses* addresses) noexcept {
  if (fill != nullptr) addresses->Add(fill->dst);
}

void AddCopy(const CUDA_MEMCPY3D* copy, Addresses* addresses) noexcept {
  if (copy == nullptr) return;
  if (copy->srcMemoryType == CU_MEMORYTYPE_DEVICE || copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED) addresses->Add(copy->srcDevice);
  if (copy->dstMemoryType == CU_MEMORYTYPE_DEVICE || copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED) addresses->Add(copy->dstDevice);
}

void AddMemory(const CUDA_MEM_ALLOC_NODE_PARAMS* memory, Addresses* addresses) noexcept {
  if (memory == nullptr) return;
  addresses->flags = kMemoryNode;
  addresses->Add(memory->dptr);
  addresses->Add(memory->bytesize);
}

// Older toolkits know no ownership: a child is copied.
bool IsMoved(const CUDA_CHILD_GRAPH_NODE_PARAMS& child) noexcept {
#if CUDA_VERSION >= 13000
  return child.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
#else
  (void)child;
  return false;
#endif
}

bool TakesGenericNode(driver::BaseId base) noexcept {
  return base == driver::BaseId::GraphAddNode || base == driver::BaseId::GraphNodeSetParams ||
         base == driver::BaseId::GraphExecNodeSetParams;
}

template <typename T>
const T* As(std::uint64_t word) noexcept {
  return reinterpret_cast<const T*>(word);
}

// The last parameter holds the node whatever the version of the call.
const CUgraphNodeParams* GenericNode(const Passage& passage) noexcept {
  return As<CUgraphNodeParams>(passage.value[driver::ShapeOf(passage.id).count - 1]);
}

void Collect(const driver::DriverRef& next, const Passage& passage, Addresses* addresses) noexcept {
  switch (passage.id) {
    case CallId::GraphAddKernelNode:
      return AddKernel(As<CUDA_KERNEL_NODE_PARAMS_v1>(passage.value[4]), next, addresses);
    case CallId::GraphKernelNodeSetParams:
      return AddKernel(As<CUDA_KERNEL_NODE_PARAMS_v1>(passage.value[1]), next, addresses);
    case CallId::GraphExecKernelNodeSetParams:
      return AddKernel(As<CUDA_KERNEL_NODE_PARAMS_v1>(passage.value[2]), next, addresses);
    case CallId::GraphAddKernelNode_v2:
      return AddKernel(As<CUDA_KERNEL_NODE_PARAMS_v2>(passage.value[4]), next, addresses);
    case CallId::GraphKernelNodeSetParams_v2:
      return AddKernel(As<CUDA_KERNEL_NODE_PARAMS_v2>(passage.value[1]), next, addresses);
    case CallId::GraphExecKernelNodeSetParams_v2:
      return AddKernel(As<CUDA_KERNEL_NODE_PARAMS_v2>(passage.value[2]), next, addresses);
    case CallId::GraphAddMemsetNode:
      return AddFill(As<CUDA_MEMSET_NODE_PARAMS>(passage.value[4]), addresses);
    case CallId::GraphMemsetNodeSetParams:
      return AddFill(As<CUDA_MEMSET_NODE_PARAMS>(passage.value[1]), addresses);
    case CallId::GraphExecMemsetNodeSetParams:
      return AddFill(As<CUDA_MEMSET_NODE_PARAMS>(passage.value[2]), addresses);
    case CallId::GraphAddMemcpyNode:
      return AddCopy(As<CUDA_MEMCPY3D>(passage.value[4]), addresses);
    case CallId::GraphMemcpyNodeSetParams:
      return AddCopy(As<CUDA_MEMCPY3D>(passage.value[1]), addresses);
    case CallId::GraphExecMemcpyNodeSetParams:
      return AddCopy(As<CUDA_MEMCPY3D>(passage.value[2]), addresses);
    case CallId::GraphAddMemAllocNode:
      return AddMemory(As<CUDA_MEM_ALLOC_NODE_PARAMS>(passage.value[4]), addresses);
    default:
      break;
  }
  const driver::BaseId base = driver::BaseOf(passage.id);
  if (!TakesGenericNode(base)) return;
  const auto* node = GenericNode(passage);
  if (node == nullptr) return;
  if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
    AddKernelNode(next, node->kernel.func, node->kernel.kern, node->kernel.kernelParams, addresses);
  if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    addresses->flags = base == driver::BaseId::GraphAddNode && IsMoved(node->graph) ? kMovedGraph : kCopiedGraph;
    addresses->Add(passage.child);
  }
  if (base == driver::BaseId::GraphAddNode && node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    addresses->flags = kMemoryNode;
    addresses->Add(node->alloc.dptr);
    addresses->Add(node->alloc.bytesize);
  }
  if (base == driver::BaseId::GraphAddNode && node->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    addresses->flags = kMemoryNode;
    addresses->Add(node->free.dptr);
  }
  if (node->type == CU_GRAPH_NODE_TYPE_MEMSET) addresses->Add(node->memset.dst);
  if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY) AddCopy(&node->memcpy.copyParams, addresses);
}

}  // namespace

std::uint64_t Gate::ChildOf(const Passage& passage) noexcept {
  if (!TakesGenericNode(driver::BaseOf(passage.id))) return 0;
  const CUgraphNodeParams* const node = GenericNode(passage);
  return node == nullptr || node->type != CU_GRAPH_NODE_TYPE_GRAPH ? 0 : reinterpret_cast<std::uintptr_t>(node->graph.graph);
}

void Gate::RecordAddresses(const Passage& passage) noexcept {
  Addresses addresses;
  Collect(next_, passage, &addresses);
  for (std::size_t first = 0; first < addresses.count; first += kRecordArguments) {
    Record* record = NewRecord(RecordKind::Argument, static_cast<std::uint16_t>(passage.id));
    if (record == nullptr) return;
    record->context = passage.record->begin;
    record->flags = addresses.flags;
    for (std::size_t i = first; i < addresses.count && i < first + kRecordArguments; ++i) record->argument[i - first] = addresses.value[i];
    journal_->Finish(record);
  }
}

}  // namespace cuaudit::faults
