// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/memory/memory.h"

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

namespace {

constexpr std::uint64_t kChunk = std::uint64_t{2} << 20;

struct Chunks {
  std::uint64_t first;
  std::uint64_t last;
};

Chunks ChunksOf(const World& world, const Block* block) noexcept {
  const std::uint64_t offset = block->base - world.device_memory.base();
  return {offset / kChunk, (offset + block->size - 1) / kChunk};
}

}  // namespace

bool ChargeChunks(World& world, int device, const Block* block) noexcept {
  if (world.chunks == nullptr) {
    const std::size_t bytes = world.device_memory.size() / kChunk * sizeof(Chunk);
    world.chunks = static_cast<Chunk*>(world.arena.Allocate(bytes));
    if (world.chunks == nullptr) return false;
  }
  const Chunks span = ChunksOf(world, block);
  std::uint64_t fresh = 0;
  for (std::uint64_t i = span.first; i <= span.last; ++i) fresh += world.chunks[i].blocks == 0 ? 1U : 0U;
  if (!Charge(world, device, fresh * kChunk)) return false;
  for (std::uint64_t i = span.first; i <= span.last; ++i) {
    Chunk& chunk = world.chunks[i];
    if (chunk.blocks == 0) chunk.device = static_cast<std::uint16_t>(device & 7);
    ++chunk.blocks;
  }
  return true;
}

void DischargeChunks(World& world, const Block* block) noexcept {
  const Chunks span = ChunksOf(world, block);
  for (std::uint64_t i = span.first; i <= span.last; ++i) {
    if (--world.chunks[i].blocks == 0) Discharge(world, world.chunks[i].device, kChunk);
  }
}

bool Charge(World& world, int device, std::uint64_t bytes) noexcept {
  DeviceState& state = world.devices[device];
  if (bytes > state.total - state.used) return false;
  state.used += bytes;
  return true;
}

void Discharge(World& world, int device, std::uint64_t bytes) noexcept { world.devices[device].used -= bytes; }

namespace {

// Makes a boundary at `address`; answers the index of the part that begins there.
std::size_t Cut(World& world, Managed* managed, std::uint64_t begin, std::uint64_t address, bool* full) {
  for (std::size_t i = 0; i < managed->parts.size(); ++i) {
    if (begin == address) return i;
    const std::uint64_t end = managed->parts[i].end;
    if (address < end) {
      if (!managed->parts.Push(world.arena, managed->parts[managed->parts.size() - 1])) {
        *full = true;
        return i;
      }
      for (std::size_t at = managed->parts.size() - 1; at > i; --at) managed->parts[at] = managed->parts[at - 1];
      managed->parts[i].end = address;
      return i + 1;
    }
    begin = end;
  }
  return managed->parts.size();
}

}  // namespace

Parts CutParts(World& world, Range* range, std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t range_end = range->base + (range->size + kPage - 1) / kPage * kPage;
  if (range->managed == nullptr) {
    Managed* const managed = world.arena.New<Managed>();
    if (managed == nullptr) return {};
    Part all;
    all.end = range_end;
    if (!managed->parts.Push(world.arena, all)) {
      world.arena.Delete(managed);
      return {};
    }
    range->managed = managed;
  }
  const std::uint64_t first = address / kPage * kPage;
  std::uint64_t last = (address + bytes + kPage - 1) / kPage * kPage;
  if (last > range_end) last = range_end;
  bool full = false;
  const std::size_t from = Cut(world, range->managed, range->base, first < range->base ? range->base : first, &full);
  const std::size_t to = Cut(world, range->managed, range->base, last, &full);
  if (full) return {};
  return {range->managed->parts.begin() + from, range->managed->parts.begin() + to};
}

Part Common(const World&, const Range* range, std::uint64_t address, std::uint64_t bytes) noexcept {
  Part common;
  if (range->managed == nullptr) return common;
  bool any = false;
  std::uint64_t begin = range->base;
  for (const Part& part : range->managed->parts) {
    if (begin < address + bytes && part.end > address) {
      if (!any) common = part;
      any = true;
      common.read_mostly = common.read_mostly && part.read_mostly;
      common.accessed_by &= part.accessed_by;
      if (common.preferred != part.preferred) common.preferred = {};
      if (common.prefetched != part.prefetched) common.prefetched = {};
    }
    begin = part.end;
  }
  return common;
}

void DropParts(World& world, Range* range) noexcept {
  if (range->managed == nullptr) return;
  range->managed->parts.Clear(world.arena);
  world.arena.Delete(range->managed);
  range->managed = nullptr;
}

}  // namespace cuaudit::sim
