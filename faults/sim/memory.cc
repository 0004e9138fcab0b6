// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory.h"

#include "faults/sim/array.h"
#include "faults/sim/chunks.h"
#include "faults/sim/context.h"
#include "faults/sim/freed.h"
#include "faults/sim/graph_memory.h"
#include "faults/sim/managed.h"
#include "faults/sim/oracle.h"
#include "faults/sim/pool.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kPoolStep = std::uint64_t{32} << 20;

Range* Take(World& world, Region& region, Context* context, std::uint64_t bytes, Kind kind) noexcept {
  Range* const range = world.arena.New<Range>();
  if (range == nullptr) return nullptr;
  Block* const block = region.Allocate(world.arena, bytes);
  if (block == nullptr) {
    world.arena.Delete(range);
    return nullptr;
  }
  range->base = block->base;
  range->size = bytes;
  range->asked = bytes;
  range->bytes = region.Bytes(block->base);
  range->kind = kind;
  range->block = block;
  range->region = &region;
  Adopt(world, range, kind == Kind::StreamOrderedMemory ? nullptr : context);  // pool memory belongs to the pool, not to the context
  return range;
}

}  // namespace

void Adopt(World& world, Range* range, Context* owner) noexcept {
  range->owner = owner;
  range->id = world.next_id++;
  if (owner != nullptr) {
    range->next = owner->ranges;
    if (owner->ranges != nullptr) owner->ranges->previous = range;
    owner->ranges = range;
  }
  world.ranges.Insert(range);
  if (range->kind != Kind::None) world.Count(range->kind, 1);
}

void Forget(World& world, Range* range) noexcept {
  if (range->owner != nullptr) {
    (range->previous != nullptr ? range->previous->next : range->owner->ranges) = range->next;
    if (range->next != nullptr) range->next->previous = range->previous;
  }
  world.ranges.Remove(range);
  ForgetHistory(world, range);
  if (range->kind != Kind::None) world.Count(range->kind, -1);
  world.arena.Delete(range);
}

bool Charge(World& world, int device, std::uint64_t bytes) noexcept {
  DeviceState& state = world.devices[device];
  if (bytes > state.total - state.used) return false;
  state.used += bytes;
  return true;
}

void Discharge(World& world, int device, std::uint64_t bytes) noexcept { world.devices[device].used -= bytes; }

Range* TakeDevice(World& world, Context* context, std::uint64_t bytes, Kind kind) noexcept {
  Range* const range = Take(world, world.device_memory, context, bytes, kind);
  if (range == nullptr) return nullptr;
  range->on_device = true;
  if (kind == Kind::StreamOrderedMemory) {
    range->charged = (bytes + 511) / 512 * 512;  // charged to its pool
    return range;
  }
  range->chunked = ChargeChunks(world, context->device, range->block);
  if (range->chunked) return range;
  GiveBack(world, range);
  return nullptr;
}

Range* TakeHost(World& world, Context* context, std::uint64_t bytes, Kind kind) noexcept {
  Range* const range = Take(world, world.host_memory, context, bytes, kind);
  if (range != nullptr) range->host_visible = true;
  return range;
}

Range* TakeElsewhere(World& world, Context* context, std::uint64_t bytes, Kind kind, char* where) noexcept {
  Range* const range = Take(world, world.device_memory, context, bytes, kind);
  if (range == nullptr) return nullptr;
  range->on_device = true;
  range->bytes = where;
  return range;
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

void FreePool(World& world, Pool* pool) noexcept {
  if (IsOnDevice(pool)) Discharge(world, pool->device, pool->reserved);
  if (!pool->destroyed) world.Retire(pool);
  world.pools.EraseValue(pool);
  world.arena.Delete(pool);
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
