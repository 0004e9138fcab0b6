// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/graph/node.h"
#include "faults/sim/kernel/launch.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/operation/value_work.h"
#include "faults/sim/oracle/oracle.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"
#include "include/cuaudit/kernel.h"

namespace cuaudit::sim {
namespace {

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

// The argument of the host function. The public part is first, so that its callbacks find the rest.
struct HostRun {
  cuaudit_launch face;
  World* world;
  Plan* plan;
  bool illegal;
};

void* Translate(cuaudit_launch* launch, std::uint64_t address, std::uint64_t bytes, std::uint32_t) {
  HostRun* const run = reinterpret_cast<HostRun*>(launch);
  pthread_mutex_lock(&run->world->lock);
  const Range* const range = run->world->ranges.Find(address);
  const bool inside = range != nullptr && range->accessible && bytes <= range->size - (address - range->base);
  char* const found = inside ? range->bytes + (address - range->base) : nullptr;
  pthread_mutex_unlock(&run->world->lock);
  if (found == nullptr) run->illegal = true;
  return found;
}

int SetConditional(cuaudit_launch* launch, std::uint64_t handle, std::uint32_t value) {
  HostRun* const run = reinterpret_cast<HostRun*>(launch);
  pthread_mutex_lock(&run->world->lock);
  const bool set = run->plan != nullptr && SetConditionalValue(run->plan, handle, value);
  pthread_mutex_unlock(&run->world->lock);
  return set ? 1 : 0;
}

void Enter(void* argument) {
  HostRun* const run = static_cast<HostRun*>(argument);
  run->face.kernel->run(&run->face);
}

bool EndsHollow(const World& world, const Stream* stream) {
  return world.hollow.all || (stream->head != nullptr && stream->head->ticket < world.hollow.before);
}

// Memory that the driver gave out, not memory of the program's own that was registered.
bool IsDriversMemory(const World& world, std::uint64_t address) {
  const Range* const range = world.ranges.Find(address);
  return range != nullptr && range->kind != driver::Kind::HostRegistration;
}

// A value in memory of the driver is written, because another stream may wait for it. A wait is over when it runs.
void PerformHollow(World& world, const Work& work) {
  switch (work.type) {
    case WorkType::Write:
      if (work.value.count != 0 || IsDriversMemory(world, work.value.address)) {
        (void)RunWrite(world, work.value);
      } else {
        world.hollow.skipped = true;
      }
      return;
    case WorkType::Await:
      if (!world.hollow.passes) (void)RunAwait(world, work.value);
      return;
    case WorkType::Copy:
    case WorkType::Fill:
    case WorkType::HostFunction:
    case WorkType::Callback:
    case WorkType::Batch:
      world.hollow.skipped = true;
      return;
    default:
      return;
  }
}

bool WritesNowhere(World& world, const ValueWork& write) {
  return write.count == 0 && HasGone(world, write.address, write.wide ? sizeof(std::uint64_t) : sizeof(std::uint32_t));
}

// Work that runs the same way, hollow or not.
bool TouchesNothing(WorkType type) { return type == WorkType::Record || type == WorkType::Wait || type == WorkType::Free; }

void Count(World& world, KernelCount what) {
  std::atomic<std::uint64_t>* const counts = world.kernel_counts;
  counts[static_cast<std::size_t>(what)].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void CallHost(World& world, Thread* thread, Inside what, CUhostFn function, void* argument) noexcept {
  const Outside outside(world, thread, what);
  function(argument);
}

CUresult RunKernel(World& world, Thread* thread, const Stream* stream, const Work& work, Plan* plan) noexcept {
  const Arguments* const arguments = work.arguments;
  if (EndsHollow(world, stream)) {
    if (arguments != nullptr && arguments->host != nullptr) world.hollow.skipped = true;
    return CUDA_SUCCESS;
  }
  if (arguments == nullptr || arguments->host == nullptr) {
    Count(world, KernelCount::Idle);
    if (arguments != nullptr && arguments->mismatch) Count(world, KernelCount::Mismatched);
    return CUDA_SUCCESS;
  }
  const CUDA_KERNEL_NODE_PARAMS& kernel = work.kernel;
  HostRun run{};
  run.world = &world;
  run.plan = plan;
  run.face.struct_bytes = sizeof(run.face);
  const unsigned grid[] = {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ};
  const unsigned block[] = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ};
  std::memcpy(run.face.grid, grid, sizeof(grid));
  std::memcpy(run.face.block, block, sizeof(block));
  run.face.shared_bytes = kernel.sharedMemBytes;
  run.face.parameter_count = arguments->count;
  run.face.parameters = arguments->pointers;
  run.face.kernel = arguments->host;
  run.face.translate = &Translate;
  run.face.set_conditional = &SetConditional;
  Count(world, KernelCount::Hosted);
  CallHost(world, thread, Inside::HostKernel, &Enter, &run);
  return run.illegal ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUresult Perform(World& world, Thread* thread, Stream* stream, const Work& work) noexcept {
  if (work.type != WorkType::Wait) world.now += kOperationTime;
  world.running_for = stream->busy ? stream->head->origin : Origin(world);
  if (work.type != WorkType::Kernel && !TouchesNothing(work.type) && EndsHollow(world, stream)) {
    PerformHollow(world, work);
    return CUDA_SUCCESS;
  }
  switch (work.type) {
    case WorkType::Nothing:
    case WorkType::Alloc:
    case WorkType::Child:
    case WorkType::Conditional:
    case WorkType::Launch:  // RunGraph
      return CUDA_SUCCESS;
    case WorkType::Kernel:
      return RunKernel(world, thread, stream, work, nullptr);
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
      return WritesNowhere(world, work.value) ? CUDA_SUCCESS : RunWrite(world, work.value);
    case WorkType::Await:
      return RunAwait(world, work.value);
    case WorkType::Batch:
      return RunBatch(world, work);
  }
  return CUDA_SUCCESS;
}

namespace {

constexpr std::uint64_t kMostTurns = 1000000;

struct StepPlace {
  World& world;
  Thread* thread;
  Stream* stream;
  Plan* plan;
};

CUresult RunSteps(const StepPlace& at, std::size_t first, std::size_t last) noexcept;

// The recording that an event step waits for was reached before the launch began (ObstacleOf).
CUresult RunStep(const StepPlace& at, std::size_t place) {
  const Step& step = at.plan->steps[place];
  if (step.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) return CUDA_SUCCESS;
  if (step.type == CU_GRAPH_NODE_TYPE_KERNEL) return RunKernel(at.world, at.thread, at.stream, step.work, at.plan);
  if (step.type != CU_GRAPH_NODE_TYPE_EVENT_RECORD) return Perform(at.world, at.thread, at.stream, step.work);
  FinishMarker(at.world, at.stream->head->markers[place + kStepMarkers]);
  return CUDA_SUCCESS;
}

unsigned ValueOf(const Plan& plan, std::uint64_t handle) {
  for (const Slot& slot : plan.slots) {
    if (slot.handle == handle) return slot.value;
  }
  return 0;
}

std::uint64_t Hosted(const World& world) { return CountKernels(&world, KernelCount::Hosted); }

CUresult RunBody(const StepPlace& at, std::size_t conditional, unsigned number) {
  std::size_t head = conditional + 1;
  for (unsigned i = 0; i < number; ++i) head += at.plan->steps[head].inner + 1;
  return RunSteps(at, head + 1, head + 1 + at.plan->steps[head].inner);
}

CUresult RunConditional(const StepPlace& at, std::size_t place) {
  const CUDA_CONDITIONAL_NODE_PARAMS& node = at.plan->steps[place].work.conditional;
  const std::uint64_t handle = node.handle;
  const unsigned size = node.size;
  const unsigned value = ValueOf(*at.plan, handle);
  switch (static_cast<int>(node.type)) {
    case 0:  // if
      if (value != 0) return RunBody(at, place, 0);
      return size == 2 ? RunBody(at, place, 1) : CUDA_SUCCESS;
    case 1:  // while
      for (std::uint64_t turn = 0; ValueOf(*at.plan, handle) != 0; ++turn) {
        if (turn == kMostTurns) return CUDA_ERROR_LAUNCH_TIMEOUT;
        const std::uint64_t before = Hosted(at.world);
        const CUresult result = RunBody(at, place, 0);
        if (result != CUDA_SUCCESS || Hosted(at.world) == before) return result;
      }
      return CUDA_SUCCESS;
    default:  // switch
      return value < size ? RunBody(at, place, value) : CUDA_SUCCESS;
  }
}

CUresult RunSteps(const StepPlace& at, std::size_t first, std::size_t last) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (std::size_t i = first; i < last && result == CUDA_SUCCESS; ++i) {
    const Step& step = at.plan->steps[i];
    if (step.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      result = RunConditional(at, i);
      i += at.plan->steps[i].inner;
    } else if (step.enabled) {
      result = RunStep(at, i);
    }
  }
  return result;
}

}  // namespace

CUresult RunPlan(World& world, Thread* thread, Stream* stream, Plan* plan) noexcept {
  for (Slot& slot : plan->slots) {
    if ((slot.flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0) slot.value = slot.initial;
  }
  return RunSteps(StepPlace{world, thread, stream, plan}, 0, plan->steps.size());
}

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
