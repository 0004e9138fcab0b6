// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/executor.h"

#include "faults/sim/arguments.h"
#include "faults/sim/attendance.h"
#include "faults/sim/batch_node.h"
#include "faults/sim/capture.h"
#include "faults/sim/copy.h"
#include "faults/sim/green.h"
#include "faults/sim/host_kernel.h"
#include "faults/sim/memory.h"
#include "faults/sim/oracle.h"
#include "faults/sim/plan.h"
#include "faults/sim/schedule.h"
#include "faults/sim/value_work.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kOperationTime = 1000;

// Releases the lock for client code. The stream's virtual time stands still meanwhile.
class Outside {
 public:
  Outside(World& world, Thread* thread, Inside what) noexcept : world_(world), thread_(thread), before_(thread->inside), now_(world.now) {
    thread_->inside = what;
    ++world_.running;
    pthread_mutex_unlock(&world_.lock);
  }
  ~Outside() {
    pthread_mutex_lock(&world_.lock);
    --world_.running;
    thread_->inside = before_;
    world_.now = now_;
    if (world_.waiting_turns != 0) pthread_cond_broadcast(&world_.turn);
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  World& world_;
  Thread* thread_;
  Inside before_;
  std::uint64_t now_;
};

void Enlist(World& world, Stream* stream) noexcept {
  if (stream->busy_index != 0 || !world.busy_streams.Push(world.arena, stream)) return;
  stream->busy_index = static_cast<std::uint32_t>(world.busy_streams.size());
}

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

}  // namespace

void CallHost(World& world, Thread* thread, Inside what, CUhostFn function, void* argument) noexcept {
  const Outside outside(world, thread, what);
  function(argument);
}

CUresult Perform(World& world, Thread* thread, Stream* stream, const Work& work) noexcept {
  if (work.type != WorkType::Wait) world.now += kOperationTime;
  switch (work.type) {
    case WorkType::Nothing:
    case WorkType::Alloc:
    case WorkType::Child:
    case WorkType::Conditional:
      return CUDA_SUCCESS;
    case WorkType::Kernel:
      return RunKernel(world, thread, work, nullptr);
    case WorkType::Copy:
      return RunCopy(world, work.copy);
    case WorkType::Fill:
      return RunFill(world, work.fill);
    case WorkType::HostFunction:
      CallHost(world, thread, Inside::HostFunction, work.host.fn, work.host.userData);
      return CUDA_SUCCESS;
    case WorkType::Callback: {
      const CUresult status = stream->owner->sticky;
      const Outside outside(world, thread, Inside::HostFunction);
      work.callback.function(work.callback.stream, status, work.callback.argument);
      return CUDA_SUCCESS;
    }
    case WorkType::Record:
      FinishMarker(world, work.marker);
      DropMarker(world, work.marker);
      return CUDA_SUCCESS;
    case WorkType::Wait:
      DropMarker(world, work.marker);
      return CUDA_SUCCESS;
    case WorkType::Free:
      FinishFree(world, work.address, work.allocation);
      return CUDA_SUCCESS;
    case WorkType::Write:
      return RunWrite(world, work.value);
    case WorkType::Await:
      return RunAwait(world, work.value);
    case WorkType::Batch:
      return RunBatch(world, work);
    case WorkType::Launch: {
      Executable* const executable = work.launch.executable;
      const CUresult result = RunPlan(world, thread, stream, work.launch.plan);
      DropPlan(world, work.launch.plan);
      if (--executable->in_flight != 0) return result;
      if (executable->destroyed) {
        FreeExecutable(world, executable);
      } else {
        LetGo(world, &executable->former);
      }
      return result;
    }
  }
  return CUDA_SUCCESS;
}

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
  const CUresult result = Perform(world, thread, stream, operation->work);
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

// The events that a launch records and waits for are bound when it is queued, as for the same calls on the stream itself. Launches of one
// executable run one after the other, in any streams. False: no event has changed.
static bool TakeMarkers(World& world, Stream* stream, Operation* operation) noexcept {
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

Stream* BusyBlocking(World& world, const Context* context) noexcept {
  for (Stream* const stream : world.busy_streams) {
    if (stream->owner == context && stream->blocking) return stream;
  }
  return nullptr;
}

}  // namespace cuaudit::sim
