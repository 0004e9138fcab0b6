// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include <string.h>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/driver/shape.h"
#include "faults/shim/call_record.h"
#include "faults/shim/captures.h"
#include "faults/shim/told_objects.h"

namespace cuaudit::faults {
namespace {

using driver::CallId;

constexpr std::size_t kMaxKernelParameters = 64;

// Collects addresses and writes them, nine to a record.
struct Addresses {
  std::uint16_t flags = 0;  // ArgumentFlag
  bool of_kernels = true;   // false: an argument of a kernel may be data, and is left out
  std::uint64_t value[kMaxKernelParameters];
  std::size_t count = 0;
  void Add(std::uint64_t address) noexcept {
    if (address != 0 && count < kMaxKernelParameters) value[count++] = address;
  }
};

template <typename T>
T* Behind(std::uint64_t word) noexcept {
  return reinterpret_cast<T*>(word);
}

// The arguments of a launch: a pointer each, or all of them packed in `extra`.
class KernelArguments {
 public:
  KernelArguments(void* const* each, void* const* extra) noexcept : each_(each), extra_(each == nullptr ? extra : nullptr) {}

  // Only of parameters that the kernel has: what it needs not nobody need have written.
  const void* At(std::size_t i, std::size_t offset) noexcept {
    if (each_ != nullptr) return each_[i];
    Unpack();
    return packed_ != nullptr && offset + sizeof(std::uint64_t) <= bytes_ ? packed_ + offset : nullptr;
  }

 private:
  void Unpack() noexcept {
    if (extra_ == nullptr) return;
    for (void* const* at = extra_; *at == CU_LAUNCH_PARAM_BUFFER_POINTER || *at == CU_LAUNCH_PARAM_BUFFER_SIZE; at += 2) {
      if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) packed_ = static_cast<const unsigned char*>(at[1]);
      if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE && at[1] != nullptr) bytes_ = *static_cast<const std::size_t*>(at[1]);
    }
    extra_ = nullptr;
  }

  void* const* each_;
  void* const* extra_;
  const unsigned char* packed_ = nullptr;
  std::size_t bytes_ = 0;
};

// Only eight-byte parameters can be addresses; the driver knows their sizes since 12.4 and older ones give none. A kernel may stand for a
// function in launches: a driver tells them apart.
void AddKernelNode(const driver::DriverRef& next, CUfunction function, CUkernel kernel, KernelArguments arguments,
                   Addresses* addresses) noexcept {
  if (!addresses->of_kernels) return;
  for (std::size_t i = 0; i < kMaxKernelParameters; ++i) {
    std::size_t offset = 0;
    std::size_t size = 0;
    CUresult known = CUDA_ERROR_INVALID_HANDLE;
    if (function != nullptr) known = next.FuncGetParamInfo(function, i, &offset, &size);
    if (i == 0 && known == CUDA_ERROR_INVALID_HANDLE && function != nullptr) {
      kernel = reinterpret_cast<CUkernel>(function);
      function = nullptr;
    }
    if (function == nullptr && kernel != nullptr) known = next.KernelGetParamInfo(kernel, i, &offset, &size);
    if (known != CUDA_SUCCESS) return;
    const void* const argument = size == sizeof(std::uint64_t) ? arguments.At(i, offset) : nullptr;
    if (argument == nullptr) continue;
    std::uint64_t word = 0;
    memcpy(&word, argument, sizeof(word));
    addresses->Add(word);
  }
}

void AddKernel(const CUDA_KERNEL_NODE_PARAMS_v1* node, const driver::DriverRef& next, Addresses* addresses) noexcept {
  if (node != nullptr) AddKernelNode(next, node->func, nullptr, {node->kernelParams, node->extra}, addresses);
}

void AddKernel(const CUDA_KERNEL_NODE_PARAMS_v2* node, const driver::DriverRef& next, Addresses* addresses) noexcept {
  if (node != nullptr) AddKernelNode(next, node->func, node->kern, {node->kernelParams, node->extra}, addresses);
}

void AddFill(const CUDA_MEMSET_NODE_PARAMS* fill, Addresses* addresses) noexcept {
  if (fill != nullptr) addresses->Add(fill->dst);
}

template <typename Copy>  // of two dimensions, of three, or between contexts
void AddCopy(const Copy* copy, Addresses* addresses) noexcept {
  if (copy == nullptr) return;
  if (copy->srcMemoryType == CU_MEMORYTYPE_DEVICE || copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED) addresses->Add(copy->srcDevice);
  if (copy->dstMemoryType == CU_MEMORYTYPE_DEVICE || copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED) addresses->Add(copy->dstDevice);
}

void AddOperations(const CUstreamBatchMemOpParams* operation, std::uint64_t count, Addresses* addresses) noexcept {
  for (std::uint64_t i = 0; operation != nullptr && i < count; ++i) {
    switch (operation[i].operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        addresses->Add(operation[i].waitValue.address);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        addresses->Add(operation[i].writeValue.address);
        break;
      default:
        break;
    }
  }
}

void AddOperations(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* node, Addresses* addresses) noexcept {
  if (node != nullptr) AddOperations(node->paramArray, node->count, addresses);
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

// The last parameter holds the node whatever the version of the call.
const CUgraphNodeParams* GenericNode(const Passage& passage) noexcept {
  return Behind<const CUgraphNodeParams>(passage.value[driver::ShapeOf(passage.id).count - 1]);
}

CUfunction Function(std::uint64_t word) noexcept { return reinterpret_cast<CUfunction>(word); }

// Of a call that became a node. The first versions of copies had addresses of 32 bits.
void CollectCaptured(const driver::DriverRef& next, const Passage& passage, Addresses* addresses) noexcept {
  const auto& value = passage.value;
  switch (driver::BaseOf(passage.id)) {
    case driver::BaseId::LaunchKernel:
      return AddKernelNode(next, Function(value[0]), nullptr, {Behind<void*>(value[9]), Behind<void*>(value[10])}, addresses);
    case driver::BaseId::LaunchCooperativeKernel:
      return AddKernelNode(next, Function(value[0]), nullptr, {Behind<void*>(value[9]), nullptr}, addresses);
    case driver::BaseId::LaunchKernelEx:
      return AddKernelNode(next, Function(value[1]), nullptr, {Behind<void*>(value[2]), Behind<void*>(value[3])}, addresses);
    case driver::BaseId::Memcpy2DAsync:
      if (passage.id != CallId::Memcpy2DAsync) AddCopy(Behind<const CUDA_MEMCPY2D>(value[0]), addresses);
      return;
    case driver::BaseId::Memcpy3DAsync:
      if (passage.id != CallId::Memcpy3DAsync) AddCopy(Behind<const CUDA_MEMCPY3D>(value[0]), addresses);
      return;
    case driver::BaseId::Memcpy3DPeerAsync:
      return AddCopy(Behind<const CUDA_MEMCPY3D_PEER>(value[0]), addresses);
    case driver::BaseId::StreamBatchMemOp:
      return AddOperations(Behind<const CUstreamBatchMemOpParams>(value[2]), value[1], addresses);
    default:
      return;
  }
}

void CollectLaunch(const driver::DriverRef& next, const Passage& passage, Addresses* words) noexcept {
  CollectCaptured(next, passage, words);
  words->flags = kLaunchWords;
}

bool IsLaunch(driver::BaseId base) noexcept {
  return base == driver::BaseId::LaunchKernel || base == driver::BaseId::LaunchCooperativeKernel || base == driver::BaseId::LaunchKernelEx;
}

void Collect(const driver::DriverRef& next, const Passage& passage, Addresses* addresses) noexcept {
  switch (passage.id) {
    case CallId::GraphAddKernelNode:
      return AddKernel(Behind<const CUDA_KERNEL_NODE_PARAMS_v1>(passage.value[4]), next, addresses);
    case CallId::GraphKernelNodeSetParams:
      return AddKernel(Behind<const CUDA_KERNEL_NODE_PARAMS_v1>(passage.value[1]), next, addresses);
    case CallId::GraphExecKernelNodeSetParams:
      return AddKernel(Behind<const CUDA_KERNEL_NODE_PARAMS_v1>(passage.value[2]), next, addresses);
    case CallId::GraphAddKernelNode_v2:
      return AddKernel(Behind<const CUDA_KERNEL_NODE_PARAMS_v2>(passage.value[4]), next, addresses);
    case CallId::GraphKernelNodeSetParams_v2:
      return AddKernel(Behind<const CUDA_KERNEL_NODE_PARAMS_v2>(passage.value[1]), next, addresses);
    case CallId::GraphExecKernelNodeSetParams_v2:
      return AddKernel(Behind<const CUDA_KERNEL_NODE_PARAMS_v2>(passage.value[2]), next, addresses);
    case CallId::GraphAddMemsetNode:
      return AddFill(Behind<const CUDA_MEMSET_NODE_PARAMS>(passage.value[4]), addresses);
    case CallId::GraphMemsetNodeSetParams:
      return AddFill(Behind<const CUDA_MEMSET_NODE_PARAMS>(passage.value[1]), addresses);
    case CallId::GraphExecMemsetNodeSetParams:
      return AddFill(Behind<const CUDA_MEMSET_NODE_PARAMS>(passage.value[2]), addresses);
    case CallId::GraphAddMemcpyNode:
      return AddCopy(Behind<const CUDA_MEMCPY3D>(passage.value[4]), addresses);
    case CallId::GraphMemcpyNodeSetParams:
      return AddCopy(Behind<const CUDA_MEMCPY3D>(passage.value[1]), addresses);
    case CallId::GraphExecMemcpyNodeSetParams:
      return AddCopy(Behind<const CUDA_MEMCPY3D>(passage.value[2]), addresses);
    case CallId::GraphAddBatchMemOpNode:
      return AddOperations(Behind<const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1>(passage.value[4]), addresses);
    case CallId::GraphBatchMemOpNodeSetParams:
      return AddOperations(Behind<const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1>(passage.value[1]), addresses);
    case CallId::GraphExecBatchMemOpNodeSetParams:
      return AddOperations(Behind<const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1>(passage.value[2]), addresses);
    case CallId::GraphAddMemAllocNode:
      return AddMemory(Behind<const CUDA_MEM_ALLOC_NODE_PARAMS>(passage.value[4]), addresses);
    default:
      break;
  }
  const driver::BaseId base = driver::BaseOf(passage.id);
  if (!TakesGenericNode(base)) return;
  const auto* node = GenericNode(passage);
  if (node == nullptr) return;
  if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
    AddKernelNode(next, node->kernel.func, node->kernel.kern, {node->kernel.kernelParams, node->kernel.extra}, addresses);
  if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    addresses->flags = base == driver::BaseId::GraphAddNode && IsMoved(node->graph) ? kMovedGraph : kCopiedGraph;
    addresses->Add(passage.given);
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
  if (node->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) AddOperations(node->memOp.paramArray, node->memOp.count, addresses);
  if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY) AddCopy(&node->memcpy.copyParams, addresses);
}

}  // namespace

std::uint64_t GivenTo(const Passage& passage) noexcept {
  if (passage.id == driver::CallId::ThreadExchangeStreamCaptureMode) {
    const auto* const mode = Behind<const CUstreamCaptureMode>(passage.value[0]);
    return mode == nullptr ? 0 : static_cast<std::uint64_t>(*mode);
  }
  const CUgraphNodeParams* const node = GenericNode(passage);
  return node == nullptr || node->type != CU_GRAPH_NODE_TYPE_GRAPH ? 0 : reinterpret_cast<std::uintptr_t>(node->graph.graph);
}

void RecordAddresses(driver::DriverRef next, Journal* journal, const Passage& passage, bool launches) noexcept {
  Addresses addresses;
  addresses.of_kernels = !journal->recording();
  Collect(next, passage, &addresses);
  if (launches && !passage.captured && IsLaunch(driver::BaseOf(passage.id))) CollectLaunch(next, passage, &addresses);
  if (passage.captured) {
    CollectCaptured(next, passage, &addresses);
    Record* const record = NewRecord(journal, RecordKind::Argument, static_cast<std::uint16_t>(passage.id));
    if (record == nullptr) return;
    record->context = passage.record->begin;
    record->flags = kCapturedNode;
    record->argument[1] = passage.stream;
    Captures::TellNode(next, passage, record);
    journal->Finish(record);
  }
  for (std::size_t first = 0; first < addresses.count; first += kRecordArguments) {
    Record* record = NewRecord(journal, RecordKind::Argument, static_cast<std::uint16_t>(passage.id));
    if (record == nullptr) return;
    record->context = passage.record->begin;
    record->flags = addresses.flags;
    for (std::size_t i = first; i < addresses.count && i < first + kRecordArguments; ++i) record->argument[i - first] = addresses.value[i];
    journal->Finish(record);
  }
}

}  // namespace cuaudit::faults
