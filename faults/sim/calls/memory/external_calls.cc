// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include <unistd.h>

#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/array.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/physical.h"

// The memory that another interface would export is, between simulated drivers, exported physical memory.
namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kLeastAlignment = 4096;

// Bytes of the external memory at device addresses of their own, which keep it alive.
Range* MapPart(Call& call, External* external, std::uint64_t offset, std::uint64_t bytes, Kind kind) {
  if (bytes == 0 || offset > external->backing->size || bytes > external->backing->size - offset) return nullptr;
  Range* const range = TakeElsewhere(call.world, call.context, bytes, kind, external->backing->bytes + offset);
  if (range == nullptr) return nullptr;
  range->external = external;
  ++external->mappings;
  return range;
}

}  // namespace

CUresult api::ImportExternalMemory(Call& call, CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* from) {
  if (out == nullptr || from == nullptr || from->size == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((from->flags & ~static_cast<unsigned>(CUDA_EXTERNAL_MEMORY_DEDICATED)) != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(from->type)) {
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD:
      break;
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  CUmemAllocationProp properties{};
  Backing* const backing = ImportBacking(call.world, from->handle.fd, &properties);
  if (backing == nullptr) {
    close(from->handle.fd);  // as a device does with what is no memory
    return CUDA_ERROR_UNKNOWN;
  }
  External* const external = call.world.Make<External>(call.context);
  if (external == nullptr) {
    DropBacking(call.world, backing);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  external->backing = backing;
  close(from->handle.fd);  // an imported descriptor is the driver's
  *out = ToHandle<CUexternalMemory>(external);
  return CUDA_SUCCESS;
}

CUresult api::DestroyExternalMemory(Call& call, CUexternalMemory handle) {
  External* const external = call.world.Find<External>(handle);
  if (external == nullptr) return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = Borrow(call, external->owner);
  if (result != CUDA_SUCCESS) return result;
  FreeExternal(call.world, external);
  return CUDA_SUCCESS;
}

CUresult api::ExternalMemoryGetMappedBuffer(Call& call, CUdeviceptr* out, CUexternalMemory handle,
                                            const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* part) {
  if (out == nullptr || part == nullptr || part->flags != 0 || part->size == 0 || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  External* const external = call.world.Find<External>(handle);
  if (external == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = Borrow(call, external->owner);
  if (result != CUDA_SUCCESS) return result;
  const Range* const range = MapPart(call, external, part->offset, part->size, Kind::DeviceMemory);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = range->base;
  return CUDA_SUCCESS;
}

CUresult api::ExternalMemoryGetMappedMipmappedArray(Call& call, CUmipmappedArray* out, CUexternalMemory handle,
                                                    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* part) {
  External* const external = call.world.Find<External>(handle);
  if (external == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Levels levels;
  if (out == nullptr || part == nullptr || part->offset % kLeastAlignment != 0 || !ShapeLevels(part->arrayDesc, part->numLevels, &levels))
    return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Borrow(call, external->owner);
  if (result != CUDA_SUCCESS) return result;
  Range* const range = MapPart(call, external, part->offset, levels.bytes, Kind::None);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const MipmappedArray* const array = MakeLevels(call.world, call.context, part->arrayDesc, levels, range);
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmipmappedArray>(array);
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
