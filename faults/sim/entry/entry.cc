// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/entry/entry.h"

#include "faults/driver/result.h"
#include "faults/sim/context/context.h"
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
  const bool advances = world.schedule == Schedule::Lazy ? world.pending > kMostPending : world.pending != 0;
  if (advances && call.thread->inside == Inside::Nothing) Advance(world, call.thread);
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

bool WentWithItsContext(World& world, CUstream stream) noexcept {
  pthread_mutex_lock(&world.lock);
  const bool went = world.DiedWithContext(stream);
  pthread_mutex_unlock(&world.lock);
  return went;
}

void Crash() noexcept {
  constexpr std::uintptr_t kNowhere = std::uintptr_t{1} << 46;  // among the handles, where no memory is (object.cc)
  (void)*reinterpret_cast<const volatile char*>(kNowhere);
}

std::size_t WriteRefusal(const RefusedCall& refusal, char* line) noexcept {
  std::size_t length = 0;
  const auto put = [&](std::string_view text) {
    for (const char c : text) {
      if (length + 1 < kLongestLine) line[length++] = c;
    }
  };
  put(driver::Name(static_cast<CallId>(refusal.call)));
  put(" answers ");
  put(driver::ResultName(static_cast<CUresult>(refusal.result)));
  line[length] = '\0';
  return length;
}

namespace {

// The gate asks these for each parameter of a launched kernel until it is told that there is no further one. That is no call of the
// program's, and must not be in its log.
bool AsksForParameters(driver::BaseId base) noexcept {
  return base == driver::BaseId::FuncGetParamInfo || base == driver::BaseId::KernelGetParamInfo;
}

}  // namespace

void LogRefusal(Call& call, CallId id, CUresult result) noexcept {
  if (AsksForParameters(driver::BaseOf(id))) return;
  World& world = call.world;
  const RefusedCall refusal{static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(result)};
  world.refusals[world.refused++ % kRefusals] = refusal;
#ifdef CUAUDIT_HAS_LogsRegisterCallback
  const Inside before = call.thread->inside;
  if (world.listeners.empty() || before != Inside::Nothing) return;
  char line[kLongestLine];
  const std::size_t length = WriteRefusal(refusal, line);
  call.thread->inside = Inside::Destructor;
  for (std::size_t i = 0; i < world.listeners.size(); ++i) {
    const CallbackEntry& entry = *world.listeners[i];
    const auto heard = reinterpret_cast<CUlogsCallback>(entry.function);
    void* const data = entry.data;
    pthread_mutex_unlock(&world.lock);
    heard(data, CU_LOG_LEVEL_ERROR, line, length);
    pthread_mutex_lock(&world.lock);
  }
  call.thread->inside = before;
#endif
}

namespace {

// Every entry point has the answer NOT_SUPPORTED; a row of bindings.def replaces it.
template <CallId id>
struct Bound {
  static constexpr bool kModelled = false;
  static constexpr auto kEntry = &ModelOf<id>::Absent;
};

#define CUAUDIT_BOUND(id, model, needs, modelled)                                                                                  \
  template <>                                                                                                                      \
  struct Bound<CallId::id> {                                                                                                       \
    static constexpr bool kModelled = modelled;                                                                                    \
    static constexpr auto kEntry = &ModelOf<CallId::id>::Entry<Needs::needs, static_cast<ModelOf<CallId::id>::Type*>(api::model)>; \
  };
#define CUAUDIT_SIM(id, model, needs) CUAUDIT_BOUND(id, model, needs, true)
#define CUAUDIT_SIM_REFUSES(id, model, needs) CUAUDIT_BOUND(id, model, needs, false)
#include "faults/sim/entry/bindings.def"
#undef CUAUDIT_SIM_REFUSES
#undef CUAUDIT_SIM
#undef CUAUDIT_BOUND

#define CUAUDIT_SIM_OLD(id)                                        \
  template <>                                                      \
  struct Bound<CallId::id> {                                       \
    static constexpr bool kModelled = true;                        \
    static constexpr auto kEntry = &ModelOf<CallId::id>::Outdated; \
  };
#include "faults/sim/entry/old_bindings.def"
#undef CUAUDIT_SIM_OLD

}  // namespace

const driver::DriverTable kTable = {{
#define CUAUDIT_CALL(id, base, version, per_thread) reinterpret_cast<driver::Entry>(Bound<CallId::id>::kEntry),
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                    },
                                    {
#define CUAUDIT_CALL(id, base, version, per_thread) Bound<CallId::id>::kModelled,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                    }};

}  // namespace cuaudit::sim
