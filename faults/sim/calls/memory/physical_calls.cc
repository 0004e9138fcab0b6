// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/physical.h"
#include "faults/sim/memory/share.h"

namespace cuaudit::sim {
namespace {

constexpr unsigned kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUresult CheckProperties(const World& world, const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if ((static_cast<unsigned>(properties->requestedHandleTypes) & ~kFd) != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(properties->location.type)) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return properties->location.id >= 0 && properties->location.id < world.device_count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return properties->location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult api::MemCreate(Call& call, CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp* properties,
                        unsigned long long flags) {
  if (out == nullptr || bytes == 0 || bytes % kGranularity != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckProperties(call.world, properties);
  if (result != CUDA_SUCCESS) return result;
  Backing* const backing = MakeBacking(call.world, *properties, bytes);
  const Physical* const physical = backing == nullptr ? nullptr : MakePhysical(call.world, backing, *properties);
  if (physical == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmemGenericAllocationHandle>(physical);
  return CUDA_SUCCESS;
}

CUresult api::MemRelease(Call& call, CUmemGenericAllocationHandle handle) {
  Physical* const physical = call.world.Find<Physical>(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (--physical->references != 0) return CUDA_SUCCESS;
  if (physical->mappings != 0) {
    call.world.Retire(physical);
    physical->released = true;
  }
  DropPhysical(call.world, physical);
  return CUDA_SUCCESS;
}

CUresult api::MemGetAllocationGranularity(Call& call, std::size_t* granularity, const CUmemAllocationProp* properties,
                                          CUmemAllocationGranularity_flags option) {
  if (granularity == nullptr || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckProperties(call.world, properties);
  if (result == CUDA_SUCCESS) *granularity = kGranularity;
  return result;
}

CUresult api::MemGetAllocationPropertiesFromHandle(Call& call, CUmemAllocationProp* out, CUmemGenericAllocationHandle handle) {
  const Physical* const physical = call.world.Find<Physical>(handle);
  if (out == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = physical->properties;
  return CUDA_SUCCESS;
}

CUresult api::MemRetainAllocationHandle(Call& call, CUmemGenericAllocationHandle* out, void* pointer) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* const range = call.world.ranges.Find(reinterpret_cast<std::uintptr_t>(pointer));
  if (range == nullptr || range->kind != Kind::Mapping) return CUDA_ERROR_INVALID_VALUE;
  Physical* const physical = range->physical;
  if (physical->released) {
    // Mappings kept it alive: it gets a handle again.
    if (!call.world.handles.Insert(physical)) return CUDA_ERROR_OUT_OF_MEMORY;
    call.world.free_standing.Add(physical);
    call.world.Count(Kind::PhysicalMemory, 1);
    physical->released = false;
  }
  ++physical->references;
  *out = ToHandle<CUmemGenericAllocationHandle>(physical);
  return CUDA_SUCCESS;
}

CUresult api::MemExportToShareableHandle(Call& call, void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                         unsigned long long flags) {
  const Physical* const physical = call.world.Find<Physical>(handle);
  if (out == nullptr || physical == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  if ((static_cast<unsigned>(physical->properties.requestedHandleTypes) & kFd) == 0) return CUDA_ERROR_INVALID_VALUE;
  const int file = ExportBacking(call.world, physical->backing, physical->properties);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(out, &file, sizeof(file));
  return CUDA_SUCCESS;
}

CUresult api::MemImportFromShareableHandle(Call& call, CUmemGenericAllocationHandle* out, void* os_handle, CUmemAllocationHandleType type) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  CUmemAllocationProp properties{};
  Backing* const backing = ImportBacking(call.world, static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle)), &properties);
  if (backing == nullptr) return CUDA_ERROR_UNKNOWN;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;  // nobody exports it again
  const Physical* const physical = MakePhysical(call.world, backing, properties);
  if (physical == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmemGenericAllocationHandle>(physical);
  return CUDA_SUCCESS;
}

// Nobody here could use the descriptor, but who asks for one has to close it.
CUresult api::MemGetHandleForAddressRange(Call& call, void* out, CUdeviceptr address, std::size_t bytes, CUmemRangeHandleType type,
                                          unsigned long long) {
  Range* const range = call.world.ranges.Find(address);
  if (out == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || bytes == 0 || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (address % kPage != 0 || bytes % kPage != 0 || bytes > range->size - (address - range->base)) return CUDA_ERROR_INVALID_VALUE;
  if (!range->on_device || call.world.profile->Attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  const int file = MakeShareFile(bytes);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(out, &file, sizeof(file));
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
