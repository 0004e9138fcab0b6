// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/order/clock.h"
#include "faults/sim/order/marker.h"
#include "faults/sim/stream/queue.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {

void Drain(Call& call, Stream* stream) noexcept {
  Pin(stream);
  TellStream(call.world, stream);
  if (stream->head != nullptr) Reach(call.world, call.thread, Goal{stream, call.world.next_ticket});
  if (call.world.clock < stream->time) call.world.clock = stream->time;
  Unpin(call.world, stream);
}

void DrainContext(Call& call, Context* context, const GreenContext* green) noexcept {
  World& world = call.world;
  const std::uint64_t limit = world.next_ticket;
  const std::uint64_t handle = context->handle;
  std::uint64_t end = 0;  // of what it waits for in destroyed streams
  TellContext(world, context, false, green);
  for (bool again = true; again && world.Find<Context>(handle) == context;) {
    again = false;
    for (Stream* const stream : world.busy_streams) {
      if (!IsStreamOf(stream, context, green) || IsReached({stream, limit})) continue;
      Pin(stream);
      Reach(world, call.thread, Goal{stream, limit});
      if (end < stream->time) end = stream->time;
      Unpin(world, stream);
      again = true;
      break;
    }
  }
  if (world.Find<Context>(handle) != context) return;
  if (green == nullptr && end < context->time) end = context->time;
  for (const Object* at = green == nullptr ? nullptr : context->children.first; at != nullptr; at = at->next) {
    if (at->tag != Tag::Stream) continue;
    const Stream* const stream = static_cast<const Stream*>(at);
    if (stream->green == green && end < stream->time) end = stream->time;
  }
  if (world.clock < end) world.clock = end;
}

void DrainLegacy(Call& call, Context* context) noexcept {
  World& world = call.world;
  const std::uint64_t limit = world.next_ticket;
  const std::uint64_t handle = context->handle;
  TellContext(world, context, true);
  for (bool again = true; again && world.Find<Context>(handle) == context;) {
    again = false;
    for (Stream* const stream : world.busy_streams) {
      if (stream->owner != context || !stream->blocking || IsReached({stream, limit})) continue;
      Reach(world, call.thread, Goal{stream, limit});
      again = true;
      break;
    }
  }
  if (world.Find<Context>(handle) != context) return;
  if (world.clock < context->blocking_time) world.clock = context->blocking_time;
  if (context->legacy != nullptr && world.clock < context->legacy->time) world.clock = context->legacy->time;
}

void DrainMarker(Call& call, Marker* marker) noexcept {
  if (marker == nullptr) return;
  ++marker->references;
  Tell(call.world, marker->clock);
  if (!marker->done) Reach(call.world, call.thread, Goal{marker->stream, marker->ticket + 1});
  if (call.world.clock < marker->time) call.world.clock = marker->time;
  DropMarker(call.world, marker);
}

}  // namespace cuaudit::sim
