// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory/pool.h"

#include <unistd.h>

#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/physical.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kPoolStep = std::uint64_t{32} << 20;
constexpr int kManaged = 2;  // CU_MEM_ALLOCATION_TYPE_MANAGED, which older headers lack

bool Charges(World& world, const Pool* pool, std::uint64_t bytes) { return !IsOnDevice(pool) || Charge(world, pool->device, bytes); }

}  // namespace

PoolsOf FindPools(World& world, const CUmemLocation& location, CUmemAllocationType type) noexcept {
  const bool managed = static_cast<int>(type) == kManaged;
  if (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED) return {};
  int place = -1;
  switch (static_cast<int>(location.type)) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (location.id < 0 || location.id >= world.device_count) return {};
      if (!managed) return {&world.devices[location.id].default_pool, &world.devices[location.id].current_pool};
      place = location.id;
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
      place = kMaxDevices;
      break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      if (location.id == 0) place = kMaxDevices + 1;
      break;
    case CU_MEM_LOCATION_TYPE_INVALID:
      if (managed) place = kMaxDevices + 2;  // no preferred place
      break;
    default:
      break;
  }
  if (place < 0) return {};
  PlacePools& pools = world.place_pools[managed ? 1 : 0][place];
  return {&pools.standard, &pools.current};
}

CUresult CheckPool(World& world, const CUmemPoolProps* properties) noexcept {
  if (properties == nullptr || FindPools(world, properties->location, properties->allocType).standard == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  if ((static_cast<unsigned>(properties->handleTypes) & ~kFd) != 0 || properties->win32SecurityAttributes != nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  for (const unsigned char byte : properties->reserved) {
    if (byte != 0) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

Pool* MakePool(World& world, const CUmemPoolProps& properties, bool is_default) noexcept {
  Pool* const pool = world.Make<Pool>(nullptr, !is_default);
  if (pool == nullptr || !world.pools.Push(world.arena, pool)) {
    if (pool != nullptr) world.Destroy(pool);
    return nullptr;
  }
  pool->is_default = is_default;
  pool->device = properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? properties.location.id : 0;
  pool->properties = properties;
  if (properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE) pool->access[pool->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return pool;
}

Pool* DefaultPool(World& world, const CUmemLocation& location, CUmemAllocationType type) noexcept {
  const PoolsOf pools = FindPools(world, location, type);
  if (pools.standard == nullptr) return nullptr;
  if (*pools.standard == nullptr) {
    CUmemPoolProps properties{};
    properties.allocType = type;
    properties.location = location;
    *pools.standard = MakePool(world, properties, true);
  }
  return *pools.standard;
}

Range* TakeFromPool(World& world, Context* context, Pool* pool, std::uint64_t bytes) noexcept {
  const std::uint64_t rounded = (bytes + 511) / 512 * 512;
  if (rounded < bytes) return nullptr;
  const std::uint64_t occupied = pool->occupied + rounded;
  std::uint64_t grow = 0;
  if (occupied > pool->reserved) {
    grow = (occupied - pool->reserved + kPoolStep - 1) / kPoolStep * kPoolStep;
    const std::uint64_t most = (pool->properties.maxSize + kPoolStep - 1) / kPoolStep * kPoolStep;
    if (most != 0 && pool->reserved + grow > most) return nullptr;
    if (!Charges(world, pool, grow)) {
      grow = occupied - pool->reserved;
      if (!Charges(world, pool, grow)) return nullptr;
    }
  }
  Range* range = nullptr;
  if (IsOnDevice(pool)) {
    range = TakeDevice(world, context, bytes, Kind::StreamOrderedMemory);
    if (range == nullptr) {
      Discharge(world, pool->device, grow);
      return nullptr;
    }
  } else {
    range = TakeHost(world, context, bytes, Kind::StreamOrderedMemory);
    if (range == nullptr) return nullptr;
    range->charged = rounded;
    range->on_device = pool->properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED;
  }
  range->pool = pool;
  ++pool->allocations;
  pool->reserved += grow;
  pool->occupied = occupied;
  pool->used += bytes;
  if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
  if (pool->used > pool->used_high) pool->used_high = pool->used;
  return range;
}

void FreePool(World& world, Pool* pool) noexcept {
  if (IsOnDevice(pool)) Discharge(world, pool->device, pool->reserved);
  if (!pool->destroyed) world.Retire(pool);
  if (pool->file >= 0) close(pool->file);
  world.pools.EraseValue(pool);
  world.arena.Delete(pool);
}

void ClosePools(World& world) noexcept {
  for (const Pool* const pool : world.pools) {
    if (pool->file >= 0) close(pool->file);
  }
}

void TrimPools(World& world) noexcept {
  for (Pool* const pool : world.pools) {
    if (pool->reserved == 0) continue;
    std::uint64_t keep = pool->occupied > pool->threshold ? pool->occupied : pool->threshold;
    keep = keep > pool->reserved ? pool->reserved : (keep + kPoolStep - 1) / kPoolStep * kPoolStep;
    if (keep >= pool->reserved) continue;
    if (IsOnDevice(pool)) Discharge(world, pool->device, pool->reserved - keep);
    pool->reserved = keep;
  }
}

namespace {

constexpr std::uint64_t kGraphStep = std::uint64_t{2} << 20;

}  // namespace

GraphMemory* FindGraphMemory(const World& world, CUdeviceptr address) noexcept {
  for (GraphMemory* const memory : world.graph_memory) {
    if (memory->address == address) return memory;
  }
  return nullptr;
}

bool IsGraphMemory(const World& world, std::uint64_t address, std::uint64_t bytes) noexcept {
  for (const GraphMemory* const memory : world.graph_memory) {
    if (address - memory->address < memory->size) return bytes <= memory->size - (address - memory->address);
  }
  return false;
}

void DropGraphMemory(World& world, GraphMemory* memory) noexcept {
  if (--memory->references != 0) return;
  if (memory->counted) world.devices[memory->device].graph_used -= (memory->size + 511) / 512 * 512;
  world.device_memory.Free(world.arena, memory->block);
  world.graph_memory.EraseValue(memory);
  world.arena.Delete(memory);
}

void TrimGraphMemory(World& world, int device) noexcept {
  DeviceState& state = world.devices[device];
  for (GraphMemory* const memory : world.graph_memory) {
    if (memory->device != device || !memory->counted || memory->live != 0) continue;
    memory->counted = false;
    state.graph_used -= (memory->size + 511) / 512 * 512;
  }
  const std::uint64_t keep = (state.graph_used + kGraphStep - 1) / kGraphStep * kGraphStep;
  if (keep >= state.graph_reserved) return;
  Discharge(world, device, state.graph_reserved - keep);
  state.graph_reserved = keep;
}

void ReleaseGraphRange(World& world, Range* range, bool all) noexcept {
  GraphMemory* const memory = range->graph;
  if (!all && --memory->live != 0) return;
  memory->live = 0;
  memory->range = nullptr;
  Forget(world, range);
  DropGraphMemory(world, memory);
}

bool ReserveGraphMemory(World& world, int ordinal, std::uint64_t used) noexcept {
  DeviceState& device = world.devices[ordinal];
  const std::uint64_t wanted = (used + kGraphStep - 1) / kGraphStep * kGraphStep;
  if (wanted > device.graph_reserved) {
    if (!Charge(world, ordinal, wanted - device.graph_reserved)) return false;
    device.graph_reserved = wanted;
  }
  if (device.graph_reserved > device.graph_reserved_high) device.graph_reserved_high = device.graph_reserved;
  if (used > device.graph_used_high) device.graph_used_high = used;
  device.graph_used = used;
  return true;
}

namespace {

void DropExternal(World& world, External* external) {
  if (external->destroyed && external->mappings == 0) {
    DropBacking(world, external->backing);
    world.arena.Delete(external);
  }
}

}  // namespace

void ForgetExternal(World& world, Range* range) noexcept {
  External* const external = range->external;
  if (external == nullptr) return;
  range->external = nullptr;
  --external->mappings;
  DropExternal(world, external);
}

void FreeExternal(World& world, External* external) noexcept {
  world.Retire(external);
  external->destroyed = true;
  DropExternal(world, external);
}

void GiveBack(World& world, Range* range) noexcept {
  EndShare(world, range);
  DropParts(world, range);
  if (range->graph != nullptr) return ReleaseGraphRange(world, range, true);
  if (range->pool != nullptr) {
    Pool* const pool = range->pool;
    if (range->import == nullptr) {
      pool->used -= range->asked;
      pool->occupied -= range->charged;
    }
    --pool->allocations;
    if (pool->destroyed && pool->allocations == 0) FreePool(world, pool);
  } else if (range->chunked) {
    DischargeChunks(world, range->block);
  }
  if (range->import != nullptr) CloseShare(world, range->import);
  if (range->kind == Kind::None) DropBindings(world, range);
  ForgetExternal(world, range);
  if (range->block != nullptr) range->region->Free(world.arena, range->block);
  Forget(world, range);
}

void FinishFree(World& world, CUdeviceptr address, std::uint64_t allocation) noexcept {
  Range* const range = world.ranges.Find(address);
  if (range == nullptr || range->base != address || (allocation != 0 && range->id != allocation)) return;
  if (range->graph != nullptr) return ReleaseGraphRange(world, range, false);
  RememberFreed(world, range);
  GiveBack(world, range);
}

void FreeArray(World& world, Array* array) noexcept {
  GiveBack(world, array->range);
  world.Destroy(array);
}

void FreeMipmappedArray(World& world, MipmappedArray* array) noexcept {
  for (unsigned i = 0; i < array->levels; ++i) {
    if (array->level[i] != nullptr) world.Destroy(array->level[i]);
  }
  GiveBack(world, array->range);
  world.Destroy(array);
}

}  // namespace cuaudit::sim
