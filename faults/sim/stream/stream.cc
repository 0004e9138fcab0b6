// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/stream/stream.h"

#include "faults/sim/graph/capture.h"
#include "faults/sim/graph/executable.h"
#include "faults/sim/kernel/launch.h"
#include "faults/sim/oracle/oracle.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {

Stream* MakeStream(World& world, Context* context, bool counted) noexcept {
  Stream* const stream = world.Make<Stream>(context, counted);
  if (stream == nullptr) return nullptr;
  stream->id = world.next_id++;
  stream->time = world.clock;
  if (context->gate == nullptr) return stream;
  if (WaitOn(world, stream, context->gate) == CUDA_SUCCESS) return stream;
  FreeStream(world, stream);
  return nullptr;
}

void FreeStream(World& world, Stream* stream) noexcept {
  ForgetStream(world, stream);
  if (stream->thread != 0) stream->owner->own_streams.EraseValue(stream);
  stream->capture_tips.Clear(world.arena);
  FreeSlot(world, stream);
  world.Retire(stream);
  stream->destroyed = true;
  Pin(stream);
  Unpin(world, stream);
}

Stream* FindStream(Call& call, CUstream handle, CUresult* result) noexcept {
  const std::uintptr_t value = reinterpret_cast<std::uintptr_t>(handle);
  const bool own = handle == CU_STREAM_PER_THREAD || (value == 0 && call.per_thread);
  if (value == 0 || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    if (call.context == nullptr) {
      *result = call.thread->inside == Inside::Nothing ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_NOT_PERMITTED;
      return nullptr;
    }
    GreenContext* const green = call.context->greens == 0 ? nullptr : CurrentGreen(call.world, call.thread);
    if (!own) return green == nullptr ? call.context->legacy : green->standard;
    if (green != nullptr) {  // it has no streams of threads
      *result = CUDA_ERROR_INVALID_HANDLE;
      return nullptr;
    }
    for (Stream* stream : call.context->own_streams) {
      if (stream->thread == call.thread->serial) return stream;
    }
    Stream* const stream = MakeStream(call.world, call.context, false);
    if (stream == nullptr) {
      *result = CUDA_ERROR_OUT_OF_MEMORY;
      return nullptr;
    }
    stream->thread = call.thread->serial;
    if (!call.context->own_streams.Push(call.world.arena, stream)) {
      call.world.Destroy(stream);
      *result = CUDA_ERROR_OUT_OF_MEMORY;
      return nullptr;
    }
    return stream;
  }
  Stream* const stream = call.Follow<Stream>(handle);
  if (stream == nullptr) {
    *result = call.world.DiedWithGreen(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
    return nullptr;
  }
  *result = Borrow(call, stream->owner);
  return *result == CUDA_SUCCESS ? stream : nullptr;
}

Stream* BusyBlocking(World& world, const Context* context) noexcept {
  for (Stream* const stream : world.busy_streams) {
    if (stream->owner == context && stream->blocking) return stream;
  }
  return nullptr;
}

GreenContext* CurrentGreen(const World& world, Thread* thread) noexcept {
  if (thread->stack.empty()) return nullptr;
  const Context* const context = world.Find<Context>(thread->stack[thread->stack.size() - 1]);
  return context == nullptr ? nullptr : context->green;
}

bool IsStreamOf(const Stream* stream, const Context* context, const GreenContext* green) noexcept {
  return stream->owner == context && (green == nullptr || stream->green == green);
}

namespace {

// Runs `each` on the streams concerned until one answers an error.
template <typename F>
CUresult ForStreams(Context* context, const GreenContext* green, F each) {
  CUresult result = CUDA_SUCCESS;
  for (Object* at = context->children.first; at != nullptr && result == CUDA_SUCCESS; at = at->next) {
    if (at->tag != Tag::Stream) continue;
    Stream* const stream = static_cast<Stream*>(at);
    if (stream != context->carrier && IsStreamOf(stream, context, green)) result = each(stream);
  }
  return result;
}

CUresult RefuseCaptured(Context* context, const GreenContext* green) {
  CUresult result = CUDA_SUCCESS;
  (void)ForStreams(context, green, [&](const Stream* stream) {
    if (stream->capture == nullptr) return CUDA_SUCCESS;
    Invalidate(stream->capture);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return CUDA_SUCCESS;
  });
  return result;
}

Stream* CarrierOf(World& world, Context* context) {
  if (context->carrier != nullptr) return context->carrier;
  Stream* const stream = MakeStream(world, context, false);
  if (stream == nullptr) return nullptr;
  stream->blocking = false;
  return context->carrier = stream;
}

// A recording of the stream, referenced by the caller; nullptr when the arena is full.
Marker* Recording(World& world, Stream* stream) {
  Marker* const marker = MakeMarker(world, stream);
  if (marker == nullptr) return nullptr;
  Work work;
  work.type = WorkType::Record;
  work.marker = marker;
  if (Enqueue(world, stream, work) != CUDA_SUCCESS) {
    DropMarker(world, marker);
    return nullptr;
  }
  ++marker->references;
  return marker;
}

}  // namespace

CUresult RecordOn(Call& call, Stream* stream, Event* event) noexcept {
  Marker* const marker = MakeMarker(call.world, stream);
  if (marker == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Work work;
  work.type = WorkType::Record;
  work.marker = marker;
  const CUresult result = Submit(call, stream, CU_GRAPH_NODE_TYPE_EMPTY, work);
  if (result != CUDA_SUCCESS) {
    DropMarker(call.world, marker);
    return result;
  }
  ++marker->references;
  ForgetEvent(call.world, event);
  DropMarker(call.world, event->marker);
  event->marker = marker;
  return CUDA_SUCCESS;
}

CUresult RecordAll(Call& call, Context* context, GreenContext* green, Event* event) noexcept {
  World& world = call.world;
  if (event->owner != context) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = RefuseCaptured(context, green);
  if (result != CUDA_SUCCESS) return result;
  Stream* const carrier = CarrierOf(world, context);
  if (carrier == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  result = ForStreams(context, green, [&](Stream* stream) {
    if (IsIdle(stream)) {
      ObserveFollow(world, carrier, stream);
      return CUDA_SUCCESS;
    }
    Marker* const marker = Recording(world, stream);
    const CUresult waits = marker == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : WaitOn(world, carrier, marker);
    DropMarker(world, marker);
    return waits;
  });
  return result == CUDA_SUCCESS ? RecordOn(call, carrier, event) : result;
}

CUresult WaitAll(Call& call, Context* context, GreenContext* green, Event* event) noexcept {
  World& world = call.world;
  if (event->capture != nullptr) {
    Invalidate(event->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUresult result = RefuseCaptured(context, green);
  if (result == CUDA_SUCCESS && event->was_captured) result = CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS || event->marker == nullptr || IsOver(world, *event->marker)) return result;
  Stream* const carrier = CarrierOf(world, context);
  if (carrier == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  result = WaitOn(world, carrier, event->marker);
  if (result != CUDA_SUCCESS) return result;
  Marker* const gate = Recording(world, carrier);
  if (gate == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  result = ForStreams(context, green, [&](Stream* stream) { return WaitOn(world, stream, gate); });
  Marker** const kept = green == nullptr ? &context->gate : &green->gate;
  DropMarker(world, *kept);
  *kept = gate;
  return result;
}

CUresult FollowContext(World& world, Stream* stream, Context* context) noexcept {
  ObserveFollow(world, stream, context);
  const std::size_t busy = world.busy_streams.size();  // the stream itself may join them
  for (std::size_t i = 0; i < busy; ++i) {
    Stream* const other = world.busy_streams[i];
    if (other == stream || other->owner != context) continue;
    Marker* const marker = Recording(world, other);
    const CUresult waits = marker == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : WaitOn(world, stream, marker);
    DropMarker(world, marker);
    if (waits != CUDA_SUCCESS) return waits;
  }
  return CUDA_SUCCESS;
}

CUresult PrecedeContext(World& world, Stream* stream, Context* context) noexcept {
  Marker* const gate = Recording(world, stream);
  if (gate == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = ForStreams(context, nullptr, [&](Stream* other) { return WaitOn(world, other, gate); });
  DropMarker(world, context->gate);
  context->gate = gate;
  return result;
}

namespace {

void Enlist(World& world, Stream* stream) noexcept {
  if (stream->busy_index != 0 || !world.busy_streams.Push(world.arena, stream)) return;
  stream->busy_index = static_cast<std::uint32_t>(world.busy_streams.size());
}

// The events that a launch records and waits for are bound when it is queued, as for the same calls on the stream itself. Launches of one
// executable run one after the other, in any streams. False: no event has changed.
bool TakeMarkers(World& world, Stream* stream, Operation* operation) noexcept {
  const Plan& plan = *operation->work.launch.plan;
  Executable* const executable = operation->work.launch.executable;
  if (!operation->markers.Push(world.arena, nullptr) || !operation->markers.Push(world.arena, nullptr)) return false;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.type != CU_GRAPH_NODE_TYPE_EVENT_RECORD && step.type != CU_GRAPH_NODE_TYPE_WAIT_EVENT) continue;
    while (operation->markers.size() < plan.steps.size() + kStepMarkers) {
      if (!operation->markers.Push(world.arena, nullptr)) return false;
    }
    if (step.type != CU_GRAPH_NODE_TYPE_EVENT_RECORD || world.Find<Event>(step.work.event) == nullptr) continue;
    operation->markers[i + kStepMarkers] = MakeMarker(world, stream);
    if (operation->markers[i + kStepMarkers] == nullptr) return false;
  }
  Marker* const end = MakeMarker(world, stream);
  if (end == nullptr) return false;
  for (std::size_t i = 0; i + kStepMarkers < operation->markers.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.type != CU_GRAPH_NODE_TYPE_EVENT_RECORD && step.type != CU_GRAPH_NODE_TYPE_WAIT_EVENT) continue;
    Event* const event = world.Find<Event>(step.work.event);
    if (event == nullptr) continue;
    if (step.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
      DropMarker(world, event->marker);
      event->marker = operation->markers[i + kStepMarkers];
      if (event->capture == nullptr) event->was_captured = false;
    }
    operation->markers[i + kStepMarkers] = event->marker;
    if (event->marker != nullptr) ++event->marker->references;
  }
  operation->markers[0] = executable->last;
  operation->markers[1] = executable->last = end;
  ++end->references;
  return true;
}

}  // namespace

void Delist(World& world, Stream* stream) noexcept {
  Stream* const last = world.busy_streams[world.busy_streams.size() - 1];
  world.busy_streams[stream->busy_index - 1] = last;
  last->busy_index = stream->busy_index;
  stream->busy_index = 0;
  world.busy_streams.Truncate(world.busy_streams.size() - 1);
}

void Bury(World& world, Stream* stream) noexcept {
  if (!stream->destroyed || stream->head != nullptr || stream->pins != 0) return;
  world.arena.Delete(stream);
}

void Unpin(World& world, Stream* stream) noexcept {
  --stream->pins;
  Bury(world, stream);
}

CUresult Enqueue(World& world, Stream* stream, const Work& work, void* staging, std::size_t staging_bytes) noexcept {
  Operation* const operation = world.arena.New<Operation>();
  if (operation == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  operation->ticket = world.next_ticket;
  operation->submitted = world.clock;
  operation->origin = Origin(world);
  operation->work = work;
  operation->staging = staging;
  operation->staging_bytes = staging_bytes;
  if (stream->head == nullptr) Enlist(world, stream);
  const bool good = stream->busy_index != 0 && (work.type != WorkType::Launch || TakeMarkers(world, stream, operation));
  if (!good) {
    if (stream->head == nullptr && stream->busy_index != 0) Delist(world, stream);
    for (Marker* const marker : operation->markers) DropMarker(world, marker);
    operation->markers.Clear(world.arena);
    world.arena.Delete(operation);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ShareArguments(work);
  ++world.next_ticket;
  (stream->tail != nullptr ? stream->tail->next : stream->head) = operation;
  stream->tail = operation;
  ++world.pending;
  ObserveWork(world, stream, operation, staging != nullptr);
  AskForAttendance(world, work);
  return CUDA_SUCCESS;
}

CUresult Submit(Call& call, Stream* stream, CUgraphNodeType type, const Work& work) noexcept {
  if (stream->capture != nullptr) return CaptureWork(call.world, stream, type, work);
  if (stream->legacy && call.world.captures != 0) {
    const CUresult result = RefuseImplicit(call.world, stream->owner);
    if (result != CUDA_SUCCESS) return result;
  }
  return Enqueue(call.world, stream, work);
}

CUresult WaitOn(World& world, Stream* stream, Marker* marker) noexcept {
  if (marker == nullptr || marker->done || marker->stream == stream) {
    ObserveWait(world, stream, marker);
    return CUDA_SUCCESS;
  }
  Work work;
  work.type = WorkType::Wait;
  work.marker = marker;
  const CUresult result = Enqueue(world, stream, work);
  if (result == CUDA_SUCCESS) ++marker->references;
  return result;
}

}  // namespace cuaudit::sim
