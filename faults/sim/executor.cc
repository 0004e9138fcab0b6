// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/executor.h"

#include "faults/sim/capture.h"
#include "faults/sim/copy.h"
#include "faults/sim/graph.h"
#include "faults/sim/memory.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kOperationTime = 1000;
constexpr std::uint64_t kEnd = ~std::uint64_t{0};

class Turn {
 public:
  Turn(World& world, const Thread* thread) noexcept : world_(world) {
    ++world_.waiting_turns;
    while (world_.executor != 0) pthread_cond_wait(&world_.turn, &world_.lock);
    --world_.waiting_turns;
    world_.executor = thread->serial;
  }
  ~Turn() {
    world_.executor = 0;
    if (world_.waiting_turns != 0) pthread_cond_broadcast(&world_.turn);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  World& world_;
};

void RunUntil(World& world, Thread* thread, Stream* stream, std::uint64_t limit) noexcept;

void RunOne(World& world, Thread* thread, Stream* stream) noexcept {
  Operation* const operation = stream->head;
  const std::uint64_t ticket = operation->ticket;
  if (stream->legacy) {
    // Others may create and destroy idle streams whenever a host function runs, hence the fresh start after each.
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = 0; i < stream->owner->streams.size() && !again; ++i) {
        Stream* const other = stream->owner->streams[i];
        if (other == stream || !other->blocking || other->head == nullptr || other->head->ticket >= ticket) continue;
        RunUntil(world, thread, other, ticket);
        again = true;
      }
    }
  } else if (stream->blocking && stream->owner->legacy != nullptr) {
    RunUntil(world, thread, stream->owner->legacy, ticket);
  }
  if (operation->work.type == WorkType::Wait) {
    const Marker* const marker = operation->work.marker;
    if (!marker->done) RunUntil(world, thread, marker->stream, marker->ticket + 1);
  }
  stream->head = operation->next;
  if (stream->head == nullptr) stream->tail = nullptr;
  stream->busy = true;
  const CUresult result = Perform(world, thread, stream, operation->work);
  stream->busy = false;
  if (result != CUDA_SUCCESS && stream->owner->sticky == CUDA_SUCCESS) stream->owner->sticky = result;
  --world.pending;
  world.arena.Delete(operation);
}

void RunUntil(World& world, Thread* thread, Stream* stream, std::uint64_t limit) noexcept {
  while (stream->head != nullptr && stream->head->ticket < limit) RunOne(world, thread, stream);
}

void CallHost(World& world, Thread* thread, CUhostFn function, void* argument) noexcept {
  thread->in_callback = true;
  pthread_mutex_unlock(&world.lock);
  function(argument);
  pthread_mutex_lock(&world.lock);
  thread->in_callback = false;
}

CUresult PerformGraph(World& world, Thread* thread, Stream* stream, Executable* executable) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (std::size_t i = 0; i < executable->steps.size() && result == CUDA_SUCCESS; ++i) {
    Step& step = executable->steps[i];
    if (!step.enabled) continue;
    if (step.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
      Event* const event = world.Find<Event>(step.work.event);
      if (event == nullptr) continue;
      Marker* const marker = MakeMarker(world, stream);
      if (marker == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
      marker->done = true;
      marker->time = world.clock;
      DropMarker(world, event->marker);
      event->marker = marker;
      if (event->capture == nullptr) event->was_captured = false;
    } else if (step.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
      const Event* const event = world.Find<Event>(step.work.event);
      if (event == nullptr || event->marker == nullptr || event->marker->done) continue;
      Marker* const marker = event->marker;
      ++marker->references;
      RunUntil(world, thread, marker->stream, marker->ticket + 1);
      DropMarker(world, marker);
    } else {
      result = Perform(world, thread, stream, step.work);
    }
  }
  return result;
}

}  // namespace

CUresult Perform(World& world, Thread* thread, Stream* stream, const Work& work) noexcept {
  world.clock += kOperationTime;
  switch (work.type) {
    case WorkType::Nothing:
    case WorkType::Kernel:
    case WorkType::Alloc:
    case WorkType::Child:
      return CUDA_SUCCESS;
    case WorkType::Copy:
      return RunCopy(world, work.copy);
    case WorkType::Fill:
      return RunFill(world, work.fill);
    case WorkType::HostFunction:
      CallHost(world, thread, work.host.fn, work.host.userData);
      return CUDA_SUCCESS;
    case WorkType::Callback:
      thread->in_callback = true;
      {
        const CUresult status = stream->owner->sticky;
        pthread_mutex_unlock(&world.lock);
        work.callback.function(work.callback.stream, status, work.callback.argument);
        pthread_mutex_lock(&world.lock);
      }
      thread->in_callback = false;
      return CUDA_SUCCESS;
    case WorkType::Record:
      work.marker->done = true;
      work.marker->time = world.clock;
      DropMarker(world, work.marker);
      return CUDA_SUCCESS;
    case WorkType::Wait:
      DropMarker(world, work.marker);
      return CUDA_SUCCESS;
    case WorkType::Free:
      FinishFree(world, work.address);
      return CUDA_SUCCESS;
    case WorkType::Launch: {
      Executable* const executable = work.executable;
      const CUresult result = PerformGraph(world, thread, stream, executable);
      if (--executable->in_flight == 0 && executable->destroyed) FreeExecutable(world, executable);
      return result;
    }
  }
  return CUDA_SUCCESS;
}

Stream* MakeStream(World& world, Context* context, bool counted) noexcept {
  Stream* const stream = world.Make<Stream>(context, counted);
  if (stream == nullptr) return nullptr;
  if (!context->streams.Push(world.arena, stream)) {
    world.Destroy(stream);
    return nullptr;
  }
  stream->id = world.next_id++;
  return stream;
}

void FreeStream(World& world, Stream* stream) noexcept {
  ForgetStream(world, stream);
  stream->owner->streams.EraseValue(stream);
  stream->capture_tips.Clear(world.arena);
  world.Destroy(stream);
}

Stream* FindStream(Call& call, CUstream handle, CUresult* result) noexcept {
  const std::uintptr_t value = reinterpret_cast<std::uintptr_t>(handle);
  const bool own = handle == CU_STREAM_PER_THREAD || (value == 0 && call.per_thread);
  if (value == 0 || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    if (call.context == nullptr) {
      *result = CUDA_ERROR_INVALID_CONTEXT;
      return nullptr;
    }
    if (!own) return call.context->legacy;
    for (Stream* stream : call.context->streams) {
      if (stream->thread == call.thread->serial) return stream;
    }
    Stream* const stream = MakeStream(call.world, call.context, false);
    if (stream == nullptr) {
      *result = CUDA_ERROR_OUT_OF_MEMORY;
      return nullptr;
    }
    stream->thread = call.thread->serial;
    return stream;
  }
  Stream* const stream = call.world.Find<Stream>(handle);
  *result = stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : Borrow(call, stream->owner);
  return *result == CUDA_SUCCESS ? stream : nullptr;
}

CUresult Enqueue(World& world, Stream* stream, const Work& work) noexcept {
  Operation* const operation = world.arena.New<Operation>();
  if (operation == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  operation->ticket = world.next_ticket++;
  operation->work = work;
  (stream->tail != nullptr ? stream->tail->next : stream->head) = operation;
  stream->tail = operation;
  ++world.pending;
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
  if (IsIdle(stream)) return;
  const std::uint64_t handle = stream->handle;
  const Turn turn(call.world, call.thread);
  if (call.world.Find<Stream>(handle) == stream) RunUntil(call.world, call.thread, stream, kEnd);
}

void DrainContext(Call& call, Context* context) noexcept {
  if (call.world.pending == 0) return;
  const std::uint64_t handle = context->handle;
  const Turn turn(call.world, call.thread);
  for (bool again = true; again && call.world.Find<Context>(handle) == context;) {
    again = false;
    for (std::size_t i = 0; i < context->streams.size() && !again; ++i) {
      if (context->streams[i]->head == nullptr) continue;
      RunUntil(call.world, call.thread, context->streams[i], kEnd);
      again = true;
    }
  }
}

void DrainMarker(Call& call, Marker* marker) noexcept {
  if (marker == nullptr || marker->done) return;
  ++marker->references;
  {
    const Turn turn(call.world, call.thread);
    if (!marker->done) RunUntil(call.world, call.thread, marker->stream, marker->ticket + 1);
  }
  DropMarker(call.world, marker);
}

void RunNext(Call& call, Stream* stream) noexcept {
  if (call.world.executor != 0 || stream->head == nullptr) return;
  const Turn turn(call.world, call.thread);
  RunOne(call.world, call.thread, stream);
}

Marker* MakeMarker(World& world, Stream* stream) noexcept {
  Marker* const marker = world.arena.New<Marker>();
  if (marker == nullptr) return nullptr;
  marker->stream = stream;
  marker->ticket = world.next_ticket;
  return marker;
}

void DropMarker(World& world, Marker* marker) noexcept {
  if (marker != nullptr && --marker->references == 0) world.arena.Delete(marker);
}

}  // namespace cuaudit::sim
