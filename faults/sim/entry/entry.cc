// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"

#include "faults/sim/context/context.h"
#include "faults/sim/entry/process.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/stream/schedule.h"

namespace cuaudit::sim {

CUresult Enter(Call& call, Needs needs, bool inside) noexcept {
  World& world = call.world;
  if (world.closed.load(std::memory_order_relaxed)) return CUDA_ERROR_DEINITIALIZED;
  if (!UsableHere(world)) return CUDA_ERROR_NOT_INITIALIZED;  // in a forked child any thread may have held the lock
  const std::uint64_t serial = ThreadSerial();
  pthread_mutex_lock(&world.lock);
  CUresult result = CUDA_SUCCESS;
  ++world.calls;
  if (!world.order.rumors.empty()) Listen(world, serial);
  call.thread = world.FindThread(serial);
  if (call.thread == nullptr) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  } else if (needs >= Needs::Init && !world.initialized) {
    result = CUDA_ERROR_NOT_INITIALIZED;
  } else if (call.thread->inside != Inside::Nothing && needs >= Needs::Init) {
    // On a device a thread of the driver runs host functions; no context is current there.
    if (!inside || call.thread->inside != Inside::HostFunction) result = CUDA_ERROR_NOT_PERMITTED;
  } else if (needs >= Needs::Object) {
    const bool unsafe = needs == Needs::Unsafe || needs == Needs::UnsafeObject;
    result = CurrentContext(world, call.thread, &call.context);
    if (result == CUDA_ERROR_INVALID_CONTEXT && needs < Needs::Context) result = CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && unsafe && world.captures != 0) result = RefuseUnsafe(world, call.thread);
  }
  if (result != CUDA_SUCCESS) pthread_mutex_unlock(&world.lock);
  return result;
}

void Leave(Call& call) noexcept {
  World& world = call.world;
  if (world.pending != 0 && world.schedule != Schedule::Lazy && call.thread->inside == Inside::Nothing) Advance(world, call.thread);
  if (world.farewells.empty()) {
    pthread_mutex_unlock(&world.lock);
    return;
  }
  // Destructors run without the lock and may not call the driver.
  while (!world.farewells.empty()) {
    const Farewell farewell = world.farewells[0];
    world.farewells.Erase(0);
    const Inside before = call.thread->inside;
    call.thread->inside = Inside::Destructor;
    pthread_mutex_unlock(&world.lock);
    farewell.function(farewell.argument);
    pthread_mutex_lock(&world.lock);
    call.thread->inside = before;
  }
  pthread_mutex_unlock(&world.lock);
}

}  // namespace cuaudit::sim
