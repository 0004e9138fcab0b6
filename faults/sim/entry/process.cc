// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/process.h"

#include <sched.h>

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

}  // namespace cuaudit::sim
