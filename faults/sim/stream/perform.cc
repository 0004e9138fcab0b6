// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/stream/perform.h"

#include "faults/sim/graph/conditional.h"
#include "faults/sim/kernel/arguments.h"
#include "faults/sim/memory/copy.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/operation/batch_node.h"
#include "faults/sim/operation/value_work.h"
#include "faults/sim/order/marker.h"
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
  if (work.type != WorkType::Kernel && !TouchesNothing(work.type) && EndsHollow(world, stream)) {
    PerformHollow(world, work);
    return CUDA_SUCCESS;
  }
  switch (work.type) {
    case WorkType::Nothing:
    case WorkType::Alloc:
    case WorkType::Child:
    case WorkType::Conditional:
    case WorkType::Launch:  // executor.cc runs it
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
      return RunWrite(world, work.value);
    case WorkType::Await:
      return RunAwait(world, work.value);
    case WorkType::Batch:
      return RunBatch(world, work);
  }
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
