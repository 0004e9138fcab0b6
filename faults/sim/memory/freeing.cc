// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/memory/chunks.h"
#include "faults/sim/memory/graph_memory.h"
#include "faults/sim/memory/managed.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/physical.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {
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
