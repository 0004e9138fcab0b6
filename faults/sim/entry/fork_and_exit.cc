// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/fork_and_exit.h"

#include <pthread.h>
#include <sched.h>

#include "faults/sim/oracle/oracle.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

bool UsableHere(World& world) noexcept {
  std::uint32_t mark = world.alive->load(std::memory_order_acquire);
  if (mark == kAlive) [[likely]]
    return true;
  // One thread checks whether the world was initialised before the fork, before any thread can initialise it.
  if (mark == kWiped && world.alive->compare_exchange_strong(mark, kBeginning, std::memory_order_acquire)) {
    if (!world.initialized) world.lock = PTHREAD_MUTEX_INITIALIZER;
    mark = world.initialized ? kRefused : kAlive;
    world.alive->store(mark, std::memory_order_release);
  }
  while (mark == kBeginning) {
    sched_yield();
    mark = world.alive->load(std::memory_order_acquire);
  }
  return mark == kAlive;
}

void Shutdown(World* world) noexcept { world->closed.store(true, std::memory_order_release); }

// A world may go on in a forked child as if nothing had happened.
const void* WipedByFork(const World* world) noexcept { return world->alive; }

bool HoldForFork(World* world) noexcept {
  pthread_mutex_lock(&world->lock);
  if (world->running == 0 && world->waiting_turns == 0) return true;
  pthread_mutex_unlock(&world->lock);
  return false;
}

void ReleaseAfterFork(World* world) noexcept { pthread_mutex_unlock(&world->lock); }

bool ContinueForked(World* world, std::atomic<std::uint64_t>* kernel_counts) noexcept {
  world->alive->store(kAlive, std::memory_order_release);
  if (kernel_counts != nullptr) world->kernel_counts = kernel_counts;
  const bool attended = world->attended;
  pthread_mutex_unlock(&world->lock);
  return attended;
}

namespace {

enum class Inherited : std::uint8_t { Nothing, Finished, Unfinished };

bool NeedsTheParent(const Work& work) { return RunsHostFunctions(work) || work.type == WorkType::Await; }

Inherited StateOf(const World& world, CUstream handle) {
  const Stream* const stream = world.Find<Stream>(handle);
  if (stream == nullptr || stream->capture != nullptr || stream->owner->sticky != CUDA_SUCCESS) return Inherited::Nothing;
  for (const Operation* operation = stream->head; operation != nullptr; operation = operation->next) {
    if (NeedsTheParent(operation->work)) return Inherited::Unfinished;
  }
  return Inherited::Finished;
}

Inherited Look(World& world, CUstream stream) {
  if (!IsForkedChild(world) || pthread_mutex_trylock(&world.lock) != 0) return Inherited::Nothing;
  const Inherited state = StateOf(world, stream);
  pthread_mutex_unlock(&world.lock);
  return state;
}

}  // namespace

CUresult QueryInherited(World& world, CUstream stream) noexcept {
  switch (Look(world, stream)) {
    case Inherited::Finished:
      return CUDA_SUCCESS;
    case Inherited::Unfinished:
      return CUDA_ERROR_NOT_READY;
    case Inherited::Nothing:
      break;
  }
  return CUDA_ERROR_NOT_INITIALIZED;
}

CUresult SynchronizeInherited(World& world, CUstream stream) noexcept {
  return Look(world, stream) == Inherited::Finished ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult LaunchInherited(World& world, CUstream stream) noexcept {
  return Look(world, stream) == Inherited::Nothing ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
