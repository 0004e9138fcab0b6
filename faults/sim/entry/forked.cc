// SPDX-License-Identifier: MIT
// forked.cc: a world that goes on in a forked child as if nothing had happened.
#include <pthread.h>

#include "faults/sim/entry/process.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

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
