// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/stream/executor.h"

#include "faults/sim/kernel/arguments.h"
#include "faults/sim/oracle/oracle.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/order/marker.h"
#include "faults/sim/stream/perform.h"
#include "faults/sim/stream/queue.h"

namespace cuaudit::sim {
namespace {

// In virtual time, work begins when the work before it has ended and the call that queued it was made.
std::uint64_t StartOf(const Stream* stream, const Operation* operation) noexcept {
  std::uint64_t start = stream->time > operation->submitted ? stream->time : operation->submitted;
  const Context* const context = stream->owner;
  if (stream->legacy) {
    start = start > context->blocking_time ? start : context->blocking_time;
  } else if (stream->blocking && context->legacy != nullptr) {
    start = start > context->legacy->time ? start : context->legacy->time;
  }
  if (operation->work.type == WorkType::Wait && operation->work.marker->time > start) start = operation->work.marker->time;
  for (const Marker* const marker : operation->markers) {
    if (marker != nullptr && marker->done && marker->time > start) start = marker->time;
  }
  return start;
}

// Ends the launch: its executable may have been destroyed or updated meanwhile.
CUresult RunLaunch(World& world, Thread* thread, Stream* stream, const LaunchWork& launch) {
  world.now += kOperationTime;
  Executable* const executable = launch.executable;
  const CUresult result = RunPlan(world, thread, stream, launch.plan);
  DropPlan(world, launch.plan);
  if (--executable->in_flight != 0) return result;
  if (executable->destroyed) {
    FreeExecutable(world, executable);
  } else {
    LetGo(world, &executable->former);
  }
  return result;
}

}  // namespace

void RunHead(World& world, Thread* thread, Stream* stream, Seen seen) noexcept {
  Operation* const operation = stream->head;
  Context* const context = stream->owner;
  stream->busy = true;
  world.now = StartOf(stream, operation);
  // Before it runs, because a thread that the host function wakes may call the driver before the function returns.
  if (operation->work.type == WorkType::Write) seen = Seen::ByAll;  // any thread may read the value
  if (seen == Seen::ByOthers) Spread(world, &operation->clock, thread->serial);
  if (seen == Seen::ByAll) Tell(world, operation->clock);
  DropClock(world, &operation->clock);
  const Work& work = operation->work;
  const CUresult result =
      work.type == WorkType::Launch ? RunLaunch(world, thread, stream, work.launch) : Perform(world, thread, stream, work);
  stream->time = world.now;
  if (context->time < world.now) context->time = world.now;
  if (stream->blocking && !stream->legacy && stream->time > context->blocking_time) context->blocking_time = stream->time;
  stream->busy = false;
  stream->head = operation->next;
  if (stream->head == nullptr) {
    stream->tail = nullptr;
    Delist(world, stream);
  }
  if (result != CUDA_SUCCESS && context->sticky == CUDA_SUCCESS) context->sticky = result;
  --world.pending;
  for (Marker* const marker : operation->markers) {
    if (marker != nullptr && marker->ticket == operation->ticket && !marker->done) FinishMarker(world, marker);  // an earlier step failed
    DropMarker(world, marker);
  }
  operation->markers.Clear(world.arena);
  DropArguments(world, operation->work);
  if (operation->staging != nullptr) world.arena.Free(operation->staging, operation->staging_bytes);
  world.arena.Delete(operation);
  Bury(world, stream);
}

void PerformAtOnce(Call& call, Stream* stream, const Work& work) noexcept {
  World& world = call.world;
  const std::uint64_t earlier = stream->time > world.clock ? stream->time : world.clock;
  const bool waits = stream->legacy && stream->owner->blocking_time > earlier;
  world.now = waits ? stream->owner->blocking_time : earlier;
  Operation operation;
  operation.work = work;
  ObserveWork(world, stream, &operation, false);
  TellStream(world, stream);
  const CUresult result = Perform(world, call.thread, stream, work);
  if (result != CUDA_SUCCESS && stream->owner->sticky == CUDA_SUCCESS) stream->owner->sticky = result;
  world.clock = stream->time = world.now;
}

}  // namespace cuaudit::sim
