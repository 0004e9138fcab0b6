// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/capture.h"
#include "faults/sim/executor.h"
#include "faults/sim/memory.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kStep = std::uint64_t{32} << 20;

// Grows the pool's reservation when its free part is too small.
Range* Take(World& world, Context* context, Pool* pool, std::uint64_t bytes) {
  const std::uint64_t charged = (bytes + 511) / 512 * 512;
  if (charged < bytes) return nullptr;
  const std::uint64_t used = pool->used + charged;
  std::uint64_t grow = 0;
  if (used > pool->reserved) {
    grow = (used - pool->reserved + kStep - 1) / kStep * kStep;
    if (pool->properties.maxSize != 0 && pool->reserved + grow > pool->properties.maxSize) return nullptr;
    if (!Charge(world, pool->device, grow)) {
      grow = used - pool->reserved;
      if (!Charge(world, pool->device, grow)) return nullptr;
    }
  }
  Range* const range = TakeDevice(world, context, bytes, Kind::StreamOrderedMemory);
  if (range == nullptr) {
    Discharge(world, pool->device, grow);
    return nullptr;
  }
  Discharge(world, context->device, range->charged);  // the pool pays
  range->pool = pool;
  ++pool->allocations;
  pool->reserved += grow;
  pool->used = used;
  if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
  if (pool->used > pool->used_high) pool->used_high = pool->used;
  return range;
}

// pool null: the current one of the stream's device.
CUresult Allocate(Call& call, CUdeviceptr* address, std::size_t bytes, Pool* pool, CUstream handle) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture != nullptr) {
    // Graph-owned memory is not modelled.
    Invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (pool == nullptr) pool = call.world.devices[stream->owner->device].current_pool;
  if (bytes == 0) {
    *address = 0;  // nothing to free
    return CUDA_SUCCESS;
  }
  const Range* range = Take(call.world, stream->owner, pool, bytes);
  if (range == nullptr) {
    DrainContext(call, stream->owner);  // frees that are queued make room
    TrimPools(call.world);
    range = Take(call.world, stream->owner, pool, bytes);
  }
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = range->base;
  return CUDA_SUCCESS;
}

bool IsDevice(const World& world, const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= 0 && location.id < world.device_count;
}

}  // namespace

CUresult api::MemAllocAsync(Call& call, CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  return Allocate(call, address, bytes, nullptr, stream);
}

CUresult api::MemAllocFromPoolAsync(Call& call, CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle, CUstream stream) {
  Pool* const pool = call.world.Find<Pool>(handle);
  return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : Allocate(call, address, bytes, pool, stream);
}

CUresult api::MemFreeAsync(Call& call, CUdeviceptr address, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (address == 0 && stream->capture == nullptr) return CUDA_SUCCESS;
  Range* const range = call.world.ranges.Find(address);
  if (range == nullptr || range->base != address || range->freeing) return CUDA_ERROR_INVALID_VALUE;
  if (range->kind == Kind::ManagedMemory) return CUDA_ERROR_NOT_SUPPORTED;
  if (range->kind != Kind::StreamOrderedMemory && range->kind != Kind::DeviceMemory) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    Invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  Work work;
  work.type = WorkType::Free;
  work.address = address;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_MEM_FREE, work);
  if (result == CUDA_SUCCESS) range->freeing = true;
  return result;
}

CUresult api::MemPoolCreate(Call& call, CUmemoryPool* out, const CUmemPoolProps* properties) {
  World& world = call.world;
  if (const CUresult result = RefuseUnsafe(world, call.thread); result != CUDA_SUCCESS) return result;
  if (out == nullptr || properties == nullptr || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!IsDevice(world, properties->location)) return CUDA_ERROR_INVALID_DEVICE;
  Pool* const pool = world.Make<Pool>(nullptr);
  if (pool == nullptr || !world.pools.Push(world.arena, pool)) {
    if (pool != nullptr) world.Destroy(pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pool->device = properties->location.id;
  pool->properties = *properties;
  pool->access[pool->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  *out = ToHandle<CUmemoryPool>(pool);
  return CUDA_SUCCESS;
}

CUresult api::MemPoolDestroy(Call& call, CUmemoryPool handle) {
  World& world = call.world;
  Pool* const pool = world.Find<Pool>(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < world.device_count; ++i) {
    if (world.devices[i].current_pool == pool) world.devices[i].current_pool = world.devices[i].default_pool;
  }
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
  if (pool == nullptr || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  call.world.devices[device].current_pool = pool;
  return CUDA_SUCCESS;
}

CUresult api::MemPoolTrimTo(Call& call, CUmemoryPool handle, std::size_t keep) {
  Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t target = pool->used > keep ? pool->used : keep;
  target = (target + kStep - 1) / kStep * kStep;
  if (target < pool->reserved) {
    Discharge(call.world, pool->device, pool->reserved - target);
    pool->reserved = target;
  }
  return CUDA_SUCCESS;
}

CUresult api::MemPoolGetAttribute(Call& call, CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
    std::memcpy(value, &pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES], sizeof(int));
    return CUDA_SUCCESS;
  }
  std::uint64_t number = 0;
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    number = pool->threshold;
  } else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) {
    number = pool->reserved;
  } else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
    number = pool->reserved_high;
  } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT) {
    number = pool->used;
  } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    number = pool->used_high;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(value, &number, sizeof(number));
  return CUDA_SUCCESS;
}

CUresult api::MemPoolSetAttribute(Call& call, CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
    std::memcpy(&pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES], value, sizeof(int));
    return CUDA_SUCCESS;
  }
  std::uint64_t number = 0;
  std::memcpy(&number, value, sizeof(number));
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    pool->threshold = number;
    return CUDA_SUCCESS;
  }
  // A high watermark can only be reset.
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && number == 0) {
    pool->reserved_high = pool->reserved;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && number == 0) {
    pool->used_high = pool->used;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult api::MemPoolSetAccess(Call& call, CUmemoryPool handle, const CUmemAccessDesc* list, std::size_t count) {
  Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || (list == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (!IsDevice(call.world, list[i].location)) return CUDA_ERROR_INVALID_DEVICE;
    if (list[i].location.id == pool->device && list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
    pool->access[list[i].location.id] = list[i].flags;
  }
  return CUDA_SUCCESS;
}

CUresult api::MemPoolGetAccess(Call& call, CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  const Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, *location)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = pool->access[location->id];
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
