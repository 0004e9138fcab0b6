// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory/memory.h"

#include "faults/sim/memory/chunks.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {
namespace {

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
  world.device_memory.Free(world.arena, range->block);
  Forget(world, range);
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

}  // namespace cuaudit::sim
