// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/process.h"

#include <pthread.h>
#include <sched.h>

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

}  // namespace cuaudit::sim
