// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"

namespace cuaudit::sim {
namespace {

constexpr CUmemAllocationType kPinned = CU_MEM_ALLOCATION_TYPE_PINNED;

}  // namespace

CUresult api::MemPoolCreate(Call& call, CUmemoryPool* out, const CUmemPoolProps* properties) {
  World& world = call.world;
  if (const CUresult result = RefuseUnsafe(world, call.thread); result != CUDA_SUCCESS) return result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = CheckPool(world, properties); result != CUDA_SUCCESS) return result;
  const Pool* const pool = MakePool(world, *properties, false);
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmemoryPool>(pool);
  return CUDA_SUCCESS;
}

CUresult api::MemPoolDestroy(Call& call, CUmemoryPool handle) {
  World& world = call.world;
  Pool* const pool = world.Find<Pool>(handle);
  if (pool == nullptr || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  const PoolsOf pools = FindPools(world, pool->properties.location, pool->properties.allocType);
  if (pools.current != nullptr && *pools.current == pool) *pools.current = *pools.standard;
  EndShare(world, pool->share);
  pool->share = 0;
  if (pool->allocations == 0) {
    FreePool(world, pool);
  } else {
    world.Retire(pool);
    pool->destroyed = true;
  }
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetDefaultMemPool(Call& call, CUmemoryPool* out, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= call.world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  *out = ToHandle<CUmemoryPool>(call.world.devices[device].default_pool);
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetMemPool(Call& call, CUmemoryPool* out, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= call.world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  *out = ToHandle<CUmemoryPool>(call.world.devices[device].current_pool);
  return CUDA_SUCCESS;
}

CUresult api::DeviceSetMemPool(Call& call, CUdevice device, CUmemoryPool handle) {
  if (device < 0 || device >= call.world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || pool->imported || !IsOnDevice(pool) || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  call.world.devices[device].current_pool = pool;
  return CUDA_SUCCESS;
}

#ifdef CUAUDIT_HAS_MemGetDefaultMemPool
CUresult api::MemGetDefaultMemPool(Call& call, CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  if (out == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (FindPools(call.world, *location, type).standard == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Pool* const pool = DefaultPool(call.world, *location, type);
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmemoryPool>(pool);
  return CUDA_SUCCESS;
}

CUresult api::MemGetMemPool(Call& call, CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  if (out == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const PoolsOf pools = FindPools(call.world, *location, type);
  if (pools.current == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (*pools.current == nullptr) return MemGetDefaultMemPool(call, out, location, type);
  *out = ToHandle<CUmemoryPool>(*pools.current);
  return CUDA_SUCCESS;
}

CUresult api::MemSetMemPool(Call& call, CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  Pool* const pool = call.world.Find<Pool>(handle);
  if (location == nullptr || pool == nullptr || pool->imported || pool->properties.allocType != type) return CUDA_ERROR_INVALID_VALUE;
  const PoolsOf pools = FindPools(call.world, *location, type);
  const PoolsOf own = FindPools(call.world, pool->properties.location, pool->properties.allocType);
  if (pools.current == nullptr || pools.current != own.current) return CUDA_ERROR_INVALID_VALUE;
  *pools.current = pool;
  return CUDA_SUCCESS;
}
#endif

CUresult api::MemPoolSetAccess(Call& call, CUmemoryPool handle, const CUmemAccessDesc* list, std::size_t count) {
  Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || (list == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const CUmemLocation& place = list[i].location;
    const bool device = place.type == CU_MEM_LOCATION_TYPE_DEVICE && place.id >= 0 && place.id < call.world.device_count;
    const unsigned flags = static_cast<unsigned>(list[i].flags);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ)
      return CUDA_ERROR_INVALID_VALUE;
    if (IsOnDevice(pool) && place.id == pool->device && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ) return CUDA_ERROR_NOT_SUPPORTED;
  }
  for (std::size_t i = 0; i < count; ++i) pool->access[list[i].location.id] = list[i].flags;
  return CUDA_SUCCESS;
}

CUresult api::MemPoolGetAccess(Call& call, CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  const Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
    if (location->id < 0 || location->id >= call.world.device_count) return CUDA_ERROR_INVALID_VALUE;
    *flags = pool->access[location->id];
    return CUDA_SUCCESS;
  }
  if (FindPools(call.world, *location, kPinned).standard == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = IsOnDevice(pool) ? CU_MEM_ACCESS_FLAGS_PROT_NONE : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
