// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/order/clock.h"

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {
namespace {

constexpr std::size_t kMostSlots = 4096;  // streams beyond this number are not compared
constexpr std::size_t kMostRumors = 64;   // when there are more, the next one counts as known to all threads

std::size_t BytesOf(std::uint32_t size) { return sizeof(Horizon) + sizeof(std::uint64_t) * size; }

void DropHorizon(World& world, Horizon* horizon) {
  if (horizon != nullptr && --horizon->references == 0) world.arena.Free(horizon, BytesOf(horizon->size));
}

// The host knows everything in a horizon of an older generation, so it is dropped.
void Refresh(World& world, Clock* clock) {
  if (clock->generation == world.order.generation) return;
  DropHorizon(world, clock->behind);
  clock->behind = nullptr;
  clock->generation = world.order.generation;
}

bool Includes(const World& world, const Clock& clock, Stamp stamp) {
  if (clock.last.slot == stamp.slot) return clock.last.count >= stamp.count;
  if (clock.behind == nullptr || clock.generation != world.order.generation) return false;
  return stamp.slot < clock.behind->size && clock.behind->count[stamp.slot] >= stamp.count;
}

void Raise(Horizon* horizon, std::uint32_t slot, std::uint64_t count) {
  if (horizon->count[slot] < count) horizon->count[slot] = count;
}

// Operations of the slot after number `count` count as ordered after everything.
void Open(Lane* slot, std::uint64_t count) {
  if (!slot->open) slot->opened = count;
  slot->open = true;
}

bool IsOpen(const Order& order, Stamp stamp) { return order.slots[stamp.slot].open && stamp.count > order.slots[stamp.slot].opened; }

void Merge(World& world, Clock* into, const Clock& from) {
  if (from.last.slot == 0 || IsKnown(world, from.last) || Includes(world, *into, from.last)) return;
  if (IsOpen(world.order, from.last)) Open(&world.order.slots[into->last.slot], into->last.count);
  Refresh(world, into);
  const std::uint32_t size = static_cast<std::uint32_t>(world.order.slots.size());
  Horizon* behind = into->behind;
  if (behind == nullptr || behind->references != 1 || behind->size < size) {
    behind = static_cast<Horizon*>(world.arena.Allocate(BytesOf(size)));
    if (behind == nullptr) {
      Open(&world.order.slots[into->last.slot], into->last.count);
      return;
    }
    behind->references = 1;
    behind->size = size;
    for (std::uint32_t i = 0; into->behind != nullptr && i < into->behind->size; ++i) behind->count[i] = into->behind->count[i];
    DropHorizon(world, into->behind);
    into->behind = behind;
  }
  Raise(behind, from.last.slot, from.last.count);
  if (from.behind == nullptr || from.generation != world.order.generation) return;
  for (std::uint32_t i = 1; i < from.behind->size; ++i) Raise(behind, i, from.behind->count[i]);
}

void Suppose(World& world, std::uint32_t slot, std::uint64_t count) {
  Vector<std::uint64_t>& supposed = world.order.supposed;
  while (supposed.size() <= slot) {
    if (!supposed.Push(world.arena, 0)) return;
  }
  if (supposed[slot] < count) supposed[slot] = count;
}

void Learn(World& world, std::uint32_t slot, std::uint64_t count) {
  Order& order = world.order;
  if (order.host[slot] >= count) return;
  if (order.supposing) return Suppose(world, slot, count);
  order.host[slot] = count;
  if (order.slots[slot].clock.last.count > count) return;
  order.slots[slot].open = false;
  if (--order.unknown == 0) ++order.generation;
}

std::uint32_t FindSlot(Order& order) {
  for (std::size_t i = 0; i < order.resting.size(); ++i) {
    const std::uint32_t slot = order.resting[i];
    if (order.slots[slot].clock.last.count > order.host[slot]) continue;
    order.resting[i] = order.resting[order.resting.size() - 1];
    order.resting.Truncate(order.resting.size() - 1);
    return slot;
  }
  return 0;
}

// A reused slot keeps counting, so old stamps stay valid.
void TakeSlot(World& world, Stream* stream) {
  Order& order = world.order;
  if (order.slots.empty() && (!order.slots.Push(world.arena, Lane{}) || !order.host.Push(world.arena, 0))) return;
  std::uint32_t slot = order.unknown == 0 || order.resting.size() > order.slots.size() / 2 ? FindSlot(order) : 0;
  if (slot == 0) {
    if (order.slots.size() >= kMostSlots) return;
    if (!order.host.Push(world.arena, 0)) return;
    if (!order.slots.Push(world.arena, Lane{})) {
      order.host.Truncate(order.host.size() - 1);
      return;
    }
    slot = static_cast<std::uint32_t>(order.slots.size() - 1);
  }
  Lane& taken = order.slots[slot];
  Context* const before = taken.fresh ? world.Find<Context>(taken.context) : nullptr;
  if (before != nullptr) before->fresh_slots.EraseValue(slot);
  Refresh(world, &taken.clock);
  taken.clock.last.slot = slot;
  taken.context = stream->owner->handle;
  taken.taken = true;
  taken.blocking = stream->blocking;
  taken.fresh = taken.open = false;
  stream->slot = slot;
}

}  // namespace

bool IsKnown(const World& world, Stamp earlier) noexcept { return earlier.slot == 0 || world.order.host[earlier.slot] >= earlier.count; }

Supposing::Supposing(World& world) noexcept : world_(world) { world_.order.supposing = true; }
Supposing::~Supposing() { world_.order.supposing = false; }

bool IsSupposed(const World& world, Stamp earlier) noexcept {
  return earlier.slot < world.order.supposed.size() && world.order.supposed[earlier.slot] >= earlier.count;
}

bool IsTraced(const World& world, const Stream* stream) noexcept { return stream->slot != 0 && !world.order.slots[stream->slot].open; }

bool IsBehind(const World& world, const Stream* stream, Stamp earlier) noexcept {
  if (IsKnown(world, earlier) || IsOpen(world.order, earlier)) return true;
  if (stream == nullptr) return false;
  if (stream->slot == 0) return true;
  const Lane& slot = world.order.slots[stream->slot];
  return slot.open || Includes(world, slot.clock, earlier);
}

Stamp Tick(World& world, Stream* stream) noexcept {
  Order& order = world.order;
  if (stream->slot == 0) TakeSlot(world, stream);
  if (stream->slot == 0) return {};
  Context* const context = stream->owner;
  order.slots[stream->slot].blocking = stream->blocking;
  order.slots[stream->slot].green = stream->green == nullptr ? 0 : stream->green->handle;
  if (stream->legacy) {
    for (const std::uint32_t other : context->fresh_slots) {
      if (!order.slots[other].fresh || order.slots[other].context != context->handle) continue;
      order.slots[other].fresh = false;
      Merge(world, &order.slots[stream->slot].clock, order.slots[other].clock);
    }
    context->fresh_slots.Truncate(0);
  } else if (stream->blocking) {
    Lane& own = order.slots[stream->slot];
    if (context->legacy != nullptr && context->legacy->slot != 0) Merge(world, &own.clock, order.slots[context->legacy->slot].clock);
    if (!own.fresh) own.fresh = context->fresh_slots.Push(world.arena, stream->slot);
  }
  Clock& clock = order.slots[stream->slot].clock;
  if (order.host[stream->slot] == clock.last.count) ++order.unknown;
  ++clock.last.count;
  return clock.last;
}

void Join(World& world, Stream* stream, const Clock& clock) noexcept {
  if (clock.last.slot == 0) return;
  if (stream->slot == 0) TakeSlot(world, stream);
  if (stream->slot == 0) return;
  Merge(world, &world.order.slots[stream->slot].clock, clock);
}

void Tell(World& world, const Clock& clock) noexcept {
  if (IsKnown(world, clock.last)) return;
  const std::uint64_t generation = world.order.generation;
  if (clock.behind != nullptr && clock.generation == generation) {
    for (std::uint32_t i = 1; i < clock.behind->size && world.order.generation == generation; ++i) Learn(world, i, clock.behind->count[i]);
  }
  Learn(world, clock.last.slot, clock.last.count);
}

void TellStream(World& world, const Stream* stream) noexcept {
  if (stream->slot != 0) Tell(world, world.order.slots[stream->slot].clock);
}

void TellContext(World& world, const Context* context, bool blocking_only, const GreenContext* green) noexcept {
  for (std::uint32_t i = 1; i < world.order.slots.size() && world.order.unknown != 0; ++i) {
    const Lane& slot = world.order.slots[i];
    if (slot.context != context->handle || (blocking_only && !slot.blocking)) continue;
    if (green == nullptr || slot.green == green->handle) Tell(world, slot.clock);
  }
}

void Spread(World& world, Clock* clock, std::uint64_t thread) noexcept {
  Vector<Rumor>& rumors = world.order.rumors;
  std::size_t kept = 0;
  for (Rumor& rumor : rumors) {
    if (IsKnown(world, rumor.clock.last)) {
      DropClock(world, &rumor.clock);
    } else {
      rumors[kept++] = rumor;
    }
  }
  rumors.Truncate(kept);
  if (!IsKnown(world, clock->last) && kept < kMostRumors && rumors.Push(world.arena, Rumor{*clock, thread})) {
    *clock = {};
    return;
  }
  Tell(world, *clock);
  DropClock(world, clock);
}

void Listen(World& world, std::uint64_t thread) noexcept {
  Vector<Rumor>& rumors = world.order.rumors;
  std::size_t kept = 0;
  for (Rumor& rumor : rumors) {
    if (rumor.thread == thread) {
      rumors[kept++] = rumor;
      continue;
    }
    Tell(world, rumor.clock);
    DropClock(world, &rumor.clock);
  }
  rumors.Truncate(kept);
}

void LoseTrack(World& world, const Stream* stream) noexcept {
  if (stream->slot == 0) return;
  Lane& slot = world.order.slots[stream->slot];
  Open(&slot, slot.clock.last.count - 1);
}

Clock ClockOf(World& world, const Stream* stream) noexcept {
  if (stream->slot == 0) return {};
  Clock& clock = world.order.slots[stream->slot].clock;
  Refresh(world, &clock);
  if (clock.behind != nullptr) ++clock.behind->references;
  return clock;
}

void DropClock(World& world, Clock* clock) noexcept {
  DropHorizon(world, clock->behind);
  *clock = {};
}

void FreeSlot(World& world, Stream* stream) noexcept {
  if (stream->slot == 0) return;
  world.order.slots[stream->slot].taken = false;
  (void)world.order.resting.Push(world.arena, stream->slot);
  stream->slot = 0;
}

Marker* MakeMarker(World& world, Stream* stream) noexcept {
  Marker* const marker = world.arena.New<Marker>();
  if (marker == nullptr) return nullptr;
  marker->stream = stream;
  marker->ticket = world.next_ticket;
  return marker;
}

void FinishMarker(World& world, Marker* marker) noexcept {
  if (marker == nullptr) return;
  marker->done = true;
  marker->time = world.now;
}

void DropMarker(World& world, Marker* marker) noexcept {
  if (marker == nullptr || --marker->references != 0) return;
  DropClock(world, &marker->clock);
  world.arena.Delete(marker);
}

bool IsOver(const World& world, const Marker& marker) noexcept { return marker.done && IsKnown(world, marker.clock.last); }

void ObserveWait(World& world, Stream* stream, const Marker* marker) noexcept {
  if (world.on_misuse == nullptr || marker == nullptr || IsKnown(world, marker->clock.last)) return;
  Join(world, stream, marker->clock);
  (void)Tick(world, stream);
}

void ObserveFollow(World& world, Stream* stream, const Stream* other) noexcept {
  if (world.on_misuse == nullptr || other->slot == 0) return;
  Join(world, stream, world.order.slots[other->slot].clock);
  (void)Tick(world, stream);
}

void ObserveFollow(World& world, Stream* stream, const Context* context) noexcept {
  if (world.on_misuse == nullptr) return;
  for (std::uint32_t i = 1; i < world.order.slots.size(); ++i) {
    if (i == stream->slot || world.order.slots[i].context != context->handle) continue;
    const Clock clock = world.order.slots[i].clock;  // Join may move the slots
    Join(world, stream, clock);
  }
}

void ObserveStranger(World& world, Stream* stream) noexcept {
  if (world.on_misuse == nullptr) return;
  (void)Tick(world, stream);
  LoseTrack(world, stream);
}

}  // namespace cuaudit::sim
