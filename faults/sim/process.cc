// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/process.h"

#include <sched.h>

namespace cuaudit::sim {
bool UsableHere(World& world) noexcept {
  std::uint32_t mark = world.alive->load(std::memory_order_acquire);
  if (mark == kAlive) [[likely]]
    return true;
  if (mark == kDestroyed || world.initialized) return false;
  if (mark == kWiped && world.alive->compare_exchange_strong(mark, kBeginning, std::memory_order_acquire)) {
    world.lock = PTHREAD_MUTEX_INITIALIZER;
    world.alive->store(kAlive, std::memory_order_release);
    return true;
  }
  while (world.alive->load(std::memory_order_acquire) != kAlive) sched_yield();
  return true;
}

void Shutdown(World* world) noexcept { world->closed.store(true, std::memory_order_release); }

}  // namespace cuaudit::sim
