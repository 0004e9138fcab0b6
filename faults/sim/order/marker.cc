// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/order/marker.h"

#include "faults/sim/order/clock.h"

namespace cuaudit::sim {

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
