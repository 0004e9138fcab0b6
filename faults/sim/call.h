// SPDX-License-Identifier: MIT
// call.h: what happens around every call: the lock, who calls, whether the call is allowed at all; then the model itself.
//
//   Model<id>   the function type that models entry point `id`: its parameters behind a Call. bindings.def declares the models.
//   Owns        nothing; a Call lives for one call.
//   Threads     the model runs with the world's lock held.
//   Errors      in this order: the process exits DEINITIALIZED; forked child or no cuInit NOT_INITIALIZED; inside a host function, but
//               for AnswersInside, NOT_PERMITTED; no context INVALID_CONTEXT; the current context is gone CONTEXT_IS_DESTROYED; a lost
//               context its sticky code; forbidden while a stream is captured STREAM_CAPTURE_UNSUPPORTED (and the capture is
//               invalidated).
//   Faults      makes no driver calls.
//   Source      CUDA Driver API 13.0.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL before every include of this translation unit"
#endif

#include <cstring>

#include "driver_present.inc"
#include "faults/driver/call_shape.h"
#include "faults/sim/world_state.h"

namespace cuaudit::sim {

using driver::CallId;
using driver::Kind;

inline constexpr unsigned kSecondInterface = 3020;  // CUDA 3.2

enum class Needs : std::uint8_t {
  Nothing,  // not even the lock
  Lock,     // callable before cuInit
  Init,
  Object,        // and no dead or lost current context; without one the object's own will do, see Borrow
  UnsafeObject,  // Object, and forbidden while a stream is captured
  Context,       // and a current, live context
  Unsafe,        // Context, and forbidden while a stream is captured
};

struct Call {
  World& world;
  Thread* thread;
  Context* context;  // the current one; null unless the model needs it, or needs an object and there is none
  bool per_thread;   // a _ptsz or _ptds entry: stream 0 is the thread's own
};

// The attribute without which the device refuses the entry point; 0: none.
constexpr int RequiredAttribute(driver::BaseId base) noexcept {
  switch (base) {
#define CUAUDIT_REQUIRES(base, number, name) \
  case driver::BaseId::base:                 \
    return number;
#include "faults/sim/requirements.def"
#undef CUAUDIT_REQUIRES
    default:
      return 0;
  }
}

// There is an older 32-bit call of the same name: a context of that interface takes only the older one.
constexpr bool HasOldTwin(driver::BaseId base) noexcept {
  switch (base) {
#define CUAUDIT_SIM_OLD(base) case driver::BaseId::base:
#include "faults/sim/old_bindings.def"
#undef CUAUDIT_SIM_OLD
    return true;
    default:
      return false;
  }
}

// What a host function may ask for, as measured on an H200 (inside.*); all else is refused there.
constexpr bool AnswersInside(driver::BaseId base) noexcept {
  return base == driver::BaseId::StreamQuery || base == driver::BaseId::EventQuery || base == driver::BaseId::EventRecord ||
         base == driver::BaseId::LaunchHostFunc;
}

CUresult Enter(Call& call, Needs needs, bool inside = false) noexcept;  // inside: see AnswersInside

// The answer when Enter said NOT_INITIALIZED: these few look at their first argument before anything else.
template <CallId id, typename First, typename... P>
CUresult NotInitialized(First first, P...) noexcept {
  constexpr driver::BaseId base = driver::BaseOf(id);
  if constexpr (base == driver::BaseId::StreamDestroy || base == driver::BaseId::EventDestroy) {
    if (first == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  } else if constexpr (base == driver::BaseId::CtxDestroy || base == driver::BaseId::StreamCreate) {
    if (first == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_ERROR_NOT_INITIALIZED;
}
template <CallId id>
CUresult NotInitialized() noexcept {
  return CUDA_ERROR_NOT_INITIALIZED;
}

void Leave(Call& call) noexcept;
// For models that need an object: without a current context the object's counts as current. Its sticky code is the answer then.
CUresult Borrow(Call& call, Context* owner) noexcept;

template <CallId id, typename F = typename driver::CallType<id>::Function>
struct ModelOf;
template <CallId id, typename... P>
struct ModelOf<id, CUresult(P...)> {
  using Type = CUresult(Call&, P...);
  template <Needs needs, Type* model>
  static CUresult Entry(void* self, P... arguments) noexcept {
    Call call{*static_cast<World*>(self), nullptr, nullptr, driver::Row(id).per_thread};
    if constexpr (needs == Needs::Nothing) {
      if (call.world.closed.load(std::memory_order_relaxed)) return CUDA_ERROR_DEINITIALIZED;
      return model(call, arguments...);
    } else {
      CUresult result = Enter(call, needs, AnswersInside(driver::BaseOf(id)));
      if (result == CUDA_ERROR_NOT_INITIALIZED) return NotInitialized<id>(arguments...);
      if (result != CUDA_SUCCESS) return result;
      constexpr int required = RequiredAttribute(driver::BaseOf(id));
      if (required != 0 && call.world.profile->Attribute(required) == 0) {
        result = CUDA_ERROR_NOT_SUPPORTED;
      } else if (HasOldTwin(driver::BaseOf(id)) && call.context != nullptr && call.context->api_version < kSecondInterface) {
        result = CUDA_ERROR_INVALID_CONTEXT;
      } else {
        result = model(call, arguments...);
      }
      Leave(call);
      return result;
    }
  }
  static CUresult Absent(void*, P...) noexcept { return CUDA_ERROR_NOT_SUPPORTED; }
  // The 32-bit interface: see old_bindings.def.
  static CUresult Outdated(void* self, P...) noexcept {
    Call call{*static_cast<World*>(self), nullptr, nullptr, false};
    const CUresult result = Enter(call, Needs::Context);
    if (result != CUDA_SUCCESS) return result;
    const bool old = call.context->api_version < kSecondInterface;
    Leave(call);
    return old ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_CONTEXT;
  }
};

// The models, declared with exactly the entry points' types; a definition api::X of another type does not compile.
namespace api {
#define CUAUDIT_SIM(id, model, needs) ModelOf<CallId::id>::Type model;
#include "faults/sim/bindings.def"
#undef CUAUDIT_SIM
}  // namespace api

}  // namespace cuaudit::sim
