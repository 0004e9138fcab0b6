// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/told_objects.h"

#include <string.h>

#include "faults/driver/effects.h"
#include "faults/driver/shape.h"
#include "faults/shim/call_record.h"

namespace cuaudit::faults {
namespace {

using driver::BaseId;
using driver::CallId;
using driver::Kind;

template <typename T>
const T* As(std::uint64_t word) noexcept {
  return reinterpret_cast<const T*>(word);
}

std::uint64_t Word(const void* handle) noexcept { return reinterpret_cast<std::uintptr_t>(handle); }

int MadeAt(std::uint64_t pointer) noexcept {
  int descriptor = -1;
  if (pointer != 0) memcpy(&descriptor, As<void>(pointer), sizeof(descriptor));
  return descriptor;
}

int TakenFrom(const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* from) noexcept {
  return from != nullptr && from->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ? from->handle.fd : -1;
}

int TakenFrom(const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* from) noexcept {
  if (from == nullptr) return -1;
  const bool owned =
      from->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD || from->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
  return owned ? from->handle.fd : -1;
}

Footing MemoryOf(const CUDA_RESOURCE_DESC* resource) noexcept {
  if (resource == nullptr) return {};
  switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return {Kind::Array, Word(resource->res.array.hArray)};
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return {Kind::MipmappedArray, Word(resource->res.mipmap.hMipmappedArray)};
    case CU_RESOURCE_TYPE_LINEAR:
      return {Kind::DeviceMemory, resource->res.linear.devPtr};
    case CU_RESOURCE_TYPE_PITCH2D:
      return {Kind::DeviceMemory, resource->res.pitch2D.devPtr};
  }
  return {};
}

Footing CodeOf(const CUDA_KERNEL_NODE_PARAMS_v1* node) noexcept {
  return node == nullptr ? Footing{} : Footing{Kind::Module, Word(node->func)};
}

Footing CodeOf(const CUDA_KERNEL_NODE_PARAMS_v2* node) noexcept {
  return node == nullptr ? Footing{} : Footing{Kind::Module, node->func != nullptr ? Word(node->func) : Word(node->kern)};
}

Footing CodeOf(const CUgraphNodeParams* node) noexcept {
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_KERNEL) return {};
  return {Kind::Module, node->kernel.func != nullptr ? Word(node->kernel.func) : Word(node->kernel.kern)};
}

// The driver makes the body graphs of a conditional node. This records their handles.
struct Bodies {
  const CUgraph* graph = nullptr;
  unsigned count = 0;
};

Bodies BodiesOf(const Passage& passage) noexcept {
  if (driver::BaseOf(passage.id) != BaseId::GraphAddNode) return {};
  const auto* const node = As<CUgraphNodeParams>(passage.value[driver::ShapeOf(passage.id).count - 1]);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_CONDITIONAL || node->conditional.phGraph_out == nullptr) return {};
  return {node->conditional.phGraph_out, node->conditional.size};
}

void Write(Journal* journal, const Passage& passage, std::uint16_t flag, std::uint64_t first, std::uint64_t second) noexcept {
  Record* const record = NewRecord(journal, RecordKind::Argument, static_cast<std::uint16_t>(passage.id));
  if (record == nullptr) return;
  record->context = passage.record->begin;
  record->flags = flag;
  record->argument[0] = first;
  record->argument[1] = second;
  journal->Finish(record);
}

}  // namespace

ToldDescriptors DescriptorsOf(const Passage& passage) noexcept {
  const auto& value = passage.value;
  ToldDescriptors told;
  switch (driver::BaseOf(passage.id)) {
    case BaseId::MemExportToShareableHandle:
    case BaseId::MemPoolExportToShareableHandle:
      if (value[2] == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) told.made = MadeAt(value[0]);
      break;
    case BaseId::MemGetHandleForAddressRange:
      if (value[3] == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD) told.made = MadeAt(value[0]);
      break;
    case BaseId::ImportExternalMemory:
      told.taken = TakenFrom(As<CUDA_EXTERNAL_MEMORY_HANDLE_DESC>(value[1]));
      break;
    case BaseId::ImportExternalSemaphore:
      told.taken = TakenFrom(As<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>(value[1]));
      break;
    default:
      break;
  }
  return told;
}

Footing FootingOf(const Passage& passage) noexcept {
  const auto& value = passage.value;
  switch (passage.id) {
    case CallId::TexObjectCreate:
    case CallId::SurfObjectCreate:
      return MemoryOf(As<CUDA_RESOURCE_DESC>(value[1]));
    case CallId::GraphAddKernelNode:
      return CodeOf(As<CUDA_KERNEL_NODE_PARAMS_v1>(value[4]));
    case CallId::GraphKernelNodeSetParams:
      return CodeOf(As<CUDA_KERNEL_NODE_PARAMS_v1>(value[1]));
    case CallId::GraphExecKernelNodeSetParams:
      return CodeOf(As<CUDA_KERNEL_NODE_PARAMS_v1>(value[2]));
    case CallId::GraphAddKernelNode_v2:
      return CodeOf(As<CUDA_KERNEL_NODE_PARAMS_v2>(value[4]));
    case CallId::GraphKernelNodeSetParams_v2:
      return CodeOf(As<CUDA_KERNEL_NODE_PARAMS_v2>(value[1]));
    case CallId::GraphExecKernelNodeSetParams_v2:
      return CodeOf(As<CUDA_KERNEL_NODE_PARAMS_v2>(value[2]));
    default:
      break;
  }
  switch (driver::BaseOf(passage.id)) {  // the last parameter holds the node whatever the version of the call
    case BaseId::GraphAddNode:
    case BaseId::GraphNodeSetParams:
    case BaseId::GraphExecNodeSetParams:
      return CodeOf(As<CUgraphNodeParams>(value[driver::ShapeOf(passage.id).count - 1]));
    default:
      return {};
  }
}

void RecordToldObjects(Journal* journal, const Passage& passage, const ToldDescriptors& descriptors) noexcept {
  if (descriptors.made >= 0 || descriptors.taken >= 0) {
    const auto name = [](int descriptor) { return static_cast<std::uint64_t>(descriptor) + 1; };  // 0 for -1
    Write(journal, passage, kDescriptor, name(descriptors.made), name(descriptors.taken));
  }
  const Footing footing = FootingOf(passage);
  if (footing.handle != 0) Write(journal, passage, kStandsOn, static_cast<std::uint64_t>(footing.kind), footing.handle);
  const Bodies bodies = BodiesOf(passage);
  for (unsigned i = 0; i < bodies.count; ++i)
    Write(journal, passage, kLends, static_cast<std::uint64_t>(Kind::Graph), Word(bodies.graph[i]));
}

namespace {

void WriteEnd(Journal* journal, const Passage& passage, CUmemorytype type, CUdeviceptr memory, CUarray array) noexcept {
  const bool on_device = type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
  if (on_device) Write(journal, passage, kNames, static_cast<std::uint64_t>(Kind::DeviceMemory), memory);
  if (type == CU_MEMORYTYPE_ARRAY) Write(journal, passage, kNames, static_cast<std::uint64_t>(Kind::Array), Word(array));
}

template <typename Copy>
void WriteEnds(Journal* journal, const Passage& passage) noexcept {
  const Copy* const copy = As<Copy>(passage.value[0]);
  if (copy == nullptr) return;
  WriteEnd(journal, passage, copy->srcMemoryType, copy->srcDevice, copy->srcArray);
  WriteEnd(journal, passage, copy->dstMemoryType, copy->dstDevice, copy->dstArray);
}

}  // namespace

// The first versions had addresses of 32 bits.
void RecordDeclinedCopy(Journal* journal, const Passage& passage, CUresult result) noexcept {
  // Other answers are given before the driver looks at the copy, which may then be no copy at all.
  if (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_CONTEXT_IS_DESTROYED) return;
  switch (driver::BaseOf(passage.id)) {
    case BaseId::Memcpy2D:
    case BaseId::Memcpy2DUnaligned:
    case BaseId::Memcpy2DAsync:
      if (passage.id == CallId::Memcpy2D || passage.id == CallId::Memcpy2DUnaligned || passage.id == CallId::Memcpy2DAsync) return;
      return WriteEnds<CUDA_MEMCPY2D>(journal, passage);
    case BaseId::Memcpy3D:
    case BaseId::Memcpy3DAsync:
      if (passage.id == CallId::Memcpy3D || passage.id == CallId::Memcpy3DAsync) return;
      return WriteEnds<CUDA_MEMCPY3D>(journal, passage);
    default:
      return;
  }
}

}  // namespace cuaudit::faults
