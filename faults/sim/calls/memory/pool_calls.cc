// SPDX-License-Identifier: MIT
// Memory in stream order, and pools.
#define __CUDA_API_VERSION_INTERNAL
#include <fcntl.h>
#include <unistd.h>

#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/graph/memory_node.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/order/lifetime.h"
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
  const DeviceState& device = call.world.devices[stream->owner->device];
  if (pool == nullptr && device.destroyed_pool != 0) return CUDA_ERROR_INVALID_VALUE;
  if (pool == nullptr) pool = device.current_pool;
  if (stream->capture != nullptr) return CaptureAlloc(call, stream, pool, bytes, address);
  if (call.world.captures != 0 && (result = RefuseUnsafe(call.world, call.thread)) != CUDA_SUCCESS) return result;
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
  if (pool == nullptr || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  if (value == nullptr) return call.Undefined(CUDA_ERROR_INVALID_VALUE);
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

namespace {

constexpr CUmemAllocationType kPinned = CU_MEM_ALLOCATION_TYPE_PINNED;

CUmemoryPool CurrentPool(const DeviceState& device) {
  if (device.destroyed_pool != 0) return reinterpret_cast<CUmemoryPool>(device.destroyed_pool);
  return ToHandle<CUmemoryPool>(device.current_pool);
}

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
  const auto note = static_cast<std::uint8_t>(HandleTable::kPoolNote + static_cast<unsigned>(pool->device));
  const bool leaves_note = IsOnDevice(pool) && !pool->imported;
  EndShare(world, pool->share);
  pool->share = 0;
  if (pool->allocations == 0) {
    FreePool(world, pool);
  } else {
    world.Retire(pool);
    pool->destroyed = true;
  }
  if (leaves_note) world.handles.LeaveNote(reinterpret_cast<std::uintptr_t>(handle), note);
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
  *out = CurrentPool(call.world.devices[device]);
  return CUDA_SUCCESS;
}

// A destroyed pool of the device is taken as well (setting.pool_destroyed); who allocates from it is refused.
CUresult api::DeviceSetMemPool(Call& call, CUdevice device, CUmemoryPool handle) {
  if (device < 0 || device >= call.world.device_count) return CUDA_ERROR_INVALID_VALUE;
  DeviceState& state = call.world.devices[device];
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (call.world.handles.NoteOf(number) == HandleTable::kPoolNote + static_cast<unsigned>(device)) {
    state.destroyed_pool = number;
    return CUDA_SUCCESS;
  }
  Pool* const pool = call.world.Find<Pool>(handle);
  if (pool == nullptr || pool->imported || !IsOnDevice(pool) || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  state.current_pool = pool;
  state.destroyed_pool = 0;
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
  const bool of_device = *pools.current == call.world.devices[(*pools.current)->device].current_pool;
  *out = of_device ? CurrentPool(call.world.devices[(*pools.current)->device]) : ToHandle<CUmemoryPool>(*pools.current);
  return CUDA_SUCCESS;
}

CUresult api::MemSetMemPool(Call& call, CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  Pool* const pool = call.world.Find<Pool>(handle);
  if (location == nullptr || pool == nullptr || pool->imported || pool->properties.allocType != type) return CUDA_ERROR_INVALID_VALUE;
  const PoolsOf pools = FindPools(call.world, *location, type);
  const PoolsOf own = FindPools(call.world, pool->properties.location, pool->properties.allocType);
  if (pools.current == nullptr || pools.current != own.current) return CUDA_ERROR_INVALID_VALUE;
  *pools.current = pool;
  if (IsOnDevice(pool)) call.world.devices[pool->device].destroyed_pool = 0;
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

namespace {

constexpr CUmemAllocationHandleType kFileDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// What the descriptor of a pool holds.
struct PoolFile {
  ShareName name;
  CUmemPoolProps properties;
};

}  // namespace

CUresult api::MemPoolExportToShareableHandle(Call& call, void* out, CUmemoryPool handle, CUmemAllocationHandleType type,
                                             unsigned long long flags) {
  World& world = call.world;
  Pool* const pool = world.Find<Pool>(handle);
  if (out == nullptr || pool == nullptr || flags != 0 || type != kFileDescriptor || pool->properties.handleTypes != kFileDescriptor)
    return CUDA_ERROR_INVALID_VALUE;
  if (pool->share == 0) pool->share = ShareSlot(world, ShareKind::Pool);
  if (pool->share == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const PoolFile contents{NameShare(world, pool->share), pool->properties};
  const int file = MakeShareFile(sizeof(contents));
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (pwrite(file, &contents, sizeof(contents), 0) != static_cast<ssize_t>(sizeof(contents))) {
    close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::memcpy(out, &file, sizeof(file));
  return CUDA_SUCCESS;
}

CUresult api::MemPoolImportFromShareableHandle(Call& call, CUmemoryPool* out, void* os_handle, CUmemAllocationHandleType type,
                                               unsigned long long flags) {
  if (out == nullptr || type != kFileDescriptor || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  PoolFile contents{};
  const int file = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
  const bool whole = file >= 0 && pread(file, &contents, sizeof(contents), 0) == static_cast<ssize_t>(sizeof(contents));
  if (!whole || contents.name.kind != ShareKind::Pool || !IsShareAlive(contents.name)) return CUDA_ERROR_UNKNOWN;
  contents.properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;  // nobody exports it again
  if (CheckPool(call.world, &contents.properties) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
  Pool* const pool = MakePool(call.world, contents.properties, false);
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  pool->imported = true;
  pool->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
  pool->origin = contents.name;
  *out = ToHandle<CUmemoryPool>(pool);
  return CUDA_SUCCESS;
}

CUresult api::MemPoolExportPointer(Call& call, CUmemPoolPtrExportData* out, CUdeviceptr address) {
  Range* const range = call.world.ranges.Find(address);
  if (out == nullptr || range == nullptr || range->base != address || range->freeing) return CUDA_ERROR_INVALID_VALUE;
  // Memory of a pool that was not exported cannot be imported by anybody.
  if (range->pool == nullptr || range->pool->share == 0 || range->import != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!ShareRange(call.world, range, ShareKind::PoolMemory, range->pool->share)) return CUDA_ERROR_OUT_OF_MEMORY;
  const ShareName name = NameShare(call.world, range->share);
  *out = {};
  std::memcpy(out, &name, sizeof(name));
  return CUDA_SUCCESS;
}

CUresult api::MemPoolImportPointer(Call& call, CUdeviceptr* out, CUmemoryPool handle, CUmemPoolPtrExportData* data) {
  World& world = call.world;
  Pool* const pool = world.Find<Pool>(handle);
  if (out == nullptr || data == nullptr || pool == nullptr || !pool->imported) return CUDA_ERROR_INVALID_VALUE;
  ShareName name{};
  std::memcpy(&name, data, sizeof(name));
  const bool of_pool = name.kind == ShareKind::PoolMemory && name.nonce == pool->origin.nonce && name.group == pool->origin.slot + 1;
  if (!of_pool) return CUDA_ERROR_INVALID_VALUE;
  if (const Import* const known = FindImport(world, name); known != nullptr) {  // the same address, and still one free
    if (known->range->pool != pool || known->range->freeing) return CUDA_ERROR_INVALID_VALUE;
    *out = known->range->base;
    return CUDA_SUCCESS;
  }
  if (call.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Import* const import = OpenShare(world, name);
  if (import == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = TakeElsewhere(world, call.context, name.size, Kind::StreamOrderedMemory, import->bytes);
  if (range == nullptr) {
    CloseShare(world, import);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  range->pool = pool;
  range->import = import;
  import->range = range;
  import->opens = 1;
  ++pool->allocations;
  *out = range->base;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
