// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/graph/memory_node.h"
#include "faults/sim/memory/chunks.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/stream/queue.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kTrimStep = std::uint64_t{32} << 20;

// pool null: the current one of the stream's device.
CUresult Allocate(Call& call, CUdeviceptr* address, std::size_t bytes, Pool* pool, CUstream handle) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture != nullptr) {
    if (pool == nullptr) pool = call.world.devices[stream->owner->device].current_pool;
    return CaptureAlloc(call, stream, pool, bytes, address);
  }
  if (call.world.captures != 0 && (result = RefuseUnsafe(call.world, call.thread)) != CUDA_SUCCESS) return result;
  if (pool == nullptr) pool = call.world.devices[stream->owner->device].current_pool;
  if (bytes == 0) {
    *address = 0;  // nothing to free
    return CUDA_SUCCESS;
  }
  Range* range = TakeFromPool(call.world, stream->owner, pool, bytes);
  if (range == nullptr) {
    const std::uint64_t kept = pool->handle;
    const std::uint64_t context = stream->owner->handle;
    Pin(stream);
    DrainContext(call, stream->owner);  // frees that are queued make room; another thread may come in meanwhile
    const bool gone = stream->destroyed;
    Unpin(call.world, stream);
    TrimPools(call.world);
    if ((result = StateAfterWait(call.world, context)) != CUDA_SUCCESS) return result;
    if (gone) return CUDA_ERROR_INVALID_HANDLE;
    pool = call.world.Find<Pool>(kept);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    range = TakeFromPool(call.world, stream->owner, pool, bytes);
  }
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  ObserveAllocation(call.world, stream, range);
  *address = range->base;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::MemAllocAsync(Call& call, CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  return Allocate(call, address, bytes, nullptr, stream);
}

CUresult api::MemAllocFromPoolAsync(Call& call, CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle, CUstream stream) {
  Pool* const pool = call.world.Find<Pool>(handle);
  return pool == nullptr || pool->imported ? CUDA_ERROR_INVALID_VALUE : Allocate(call, address, bytes, pool, stream);
}

CUresult api::MemFreeAsync(Call& call, CUdeviceptr address, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture != nullptr) return CaptureFree(call, stream, address);
  if (address == 0) return CUDA_SUCCESS;
  Range* const range = call.world.ranges.Find(address);
  if (range == nullptr || range->base != address || range->freeing) return CUDA_ERROR_INVALID_VALUE;
  if (range->kind == Kind::ManagedMemory) return CUDA_ERROR_NOT_SUPPORTED;
  if (range->kind != Kind::StreamOrderedMemory && range->kind != Kind::DeviceMemory) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.type = WorkType::Free;
  work.address = address;
  work.allocation = range->id;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_MEM_FREE, work);
  if (result == CUDA_SUCCESS) range->freeing = true;
  return result;
}

CUresult api::MemPoolTrimTo(Call& call, CUmemoryPool handle, std::size_t keep) {
  Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t target = pool->occupied > keep ? pool->occupied : keep;
  target = (target + kTrimStep - 1) / kTrimStep * kTrimStep;
  if (target < pool->reserved) {
    if (IsOnDevice(pool)) Discharge(call.world, pool->device, pool->reserved - target);
    pool->reserved = target;
  }
  return CUDA_SUCCESS;
}

CUresult api::MemPoolGetAttribute(Call& call, CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || pool->imported || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
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
  if (pool == nullptr || pool->imported || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
    int on = 0;
    std::memcpy(&on, value, sizeof(on));
    pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = on != 0 ? 1 : 0;
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

}  // namespace cuaudit::sim
