// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/graph_memory.h"
#include "faults/sim/memory/pool.h"

namespace cuaudit::sim {
namespace {

template <typename T>
CUresult Put(void* out, T value) {
  std::memcpy(out, &value, sizeof(value));
  return CUDA_SUCCESS;
}

unsigned long long HandleTypes(const Range* range) {
  if (range->physical != nullptr) return static_cast<unsigned long long>(range->physical->properties.requestedHandleTypes);
  return range->pool != nullptr ? static_cast<unsigned long long>(range->pool->properties.handleTypes) : 0;
}

int DeviceOf(const Range* range) {
  if (range->owner != nullptr) return range->owner->device;
  if (range->physical != nullptr) return range->physical->properties.location.id;
  if (range->pool != nullptr) return range->pool->device;
  return range->graph != nullptr ? range->graph->device : 0;
}

CUresult Attribute(const World& world, void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  const Range* const range = world.ranges.Find(address);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int device = DeviceOf(range);
  void* const host = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Put(out, range->owner == nullptr ? CUcontext{} : ToHandle<CUcontext>(range->owner));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Put(out, static_cast<unsigned>(range->on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Put(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return range->host_visible ? Put(out, host) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Put(out, range->sync_memops ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Put(out, static_cast<unsigned long long>(range->id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Put(out, IsManaged(range) ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Put(out, device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Put(out, range->kind == Kind::DeviceMemory ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Put(out, range->base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Put(out, static_cast<std::size_t>(range->size));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Put(out, 1U);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Put(out, HandleTypes(range));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Put(out, 0U);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Put(out, static_cast<unsigned>(range->accessible ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                              : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Put(out, range->pool == nullptr ? CUmemoryPool{} : ToHandle<CUmemoryPool>(range->pool));  // though it be destroyed
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Put(out, static_cast<std::size_t>(range->size));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Put(out, range->base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Put(out, static_cast<unsigned long long>(range->id));
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return range->on_device ? Put(out, CUDA_POINTER_ATTRIBUTE_P2P_TOKENS{}) : CUDA_ERROR_INVALID_VALUE;
#if CUDA_VERSION >= 12080
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
#endif
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

bool IsAttribute(CUpointer_attribute attribute) {
#if CUDA_VERSION >= 12080
  constexpr CUpointer_attribute kLast = CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
#else
  constexpr CUpointer_attribute kLast = CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID;
#endif
  return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT && attribute <= kLast;
}

// What the plural form writes for memory the driver does not know.
void PutNothing(void* out, CUpointer_attribute attribute) {
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    (void)Put(out, -2);
  } else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
             attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED || attribute == CU_POINTER_ATTRIBUTE_MAPPED ||
             attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE || attribute == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS ||
             attribute == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE) {
    (void)Put(out, 0U);
  } else if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
    return;
#if CUDA_VERSION >= 12080
  } else if (attribute == CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE) {
    return;
#endif
  } else {
    (void)Put(out, 0ULL);
  }
}

}  // namespace

CUresult api::PointerGetAttribute(Call& call, void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  const Range* const range = call.world.ranges.Find(address);
  if (out == nullptr || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Borrow(call, range->owner);
  return result == CUDA_SUCCESS ? Attribute(call.world, out, attribute, address) : result;
}

CUresult api::PointerGetAttributes(Call& call, unsigned int count, CUpointer_attribute* attributes, void** out, CUdeviceptr address) {
  const Range* const range = call.world.ranges.Find(address);
  const CUresult result = Borrow(call, range == nullptr ? nullptr : range->owner);
  if (result != CUDA_SUCCESS) return result;
  if (range == nullptr && call.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (count == 0 || attributes == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (out[i] == nullptr || !IsAttribute(attributes[i])) return CUDA_ERROR_INVALID_VALUE;
    if (Attribute(call.world, out[i], attributes[i], address) != CUDA_SUCCESS) PutNothing(out[i], attributes[i]);
  }
  return CUDA_SUCCESS;
}

CUresult api::PointerSetAttribute(Call& call, const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  Range* const range = call.world.ranges.Find(address);
  if (value == nullptr || range == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  unsigned on = 0;
  std::memcpy(&on, value, sizeof(on));
  range->sync_memops = on != 0;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
