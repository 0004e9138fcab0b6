// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/stream/queue.h"

#include "faults/sim/graph/capture.h"
#include "faults/sim/graph/executable.h"
#include "faults/sim/kernel/launch.h"
#include "faults/sim/oracle/oracle.h"
#include "faults/sim/order/clock.h"

namespace cuaudit::sim {
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
