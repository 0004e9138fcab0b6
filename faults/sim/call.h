// SPDX-License-Identifier: MIT
// call.h: what happens around every call: the lock, who calls, whether the call is allowed at all; then the model itself.
//
//   Model<id>   the function type that models entry point `id`: its parameters behind a Call. bindings.def declares the models.
//   Owns        nothing; a Call lives for one call.
//   Threads     the model runs with the world's lock held.
//   Errors      in this order: forked child or no cuInit NOT_INITIALIZED; inside a host function NOT_PERMITTED; no context
//               INVALID_CONTEXT; the current context is gone CONTEXT_IS_DESTROYED; a lost context its sticky code; forbidden while
//               a stream is captured STREAM_CAPTURE_UNSUPPORTED (and the capture is invalidated).
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

CUresult Enter(Call& call, Needs needs) noexcept;
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
      return model(call, arguments...);
    } else {
      CUresult result = Enter(call, needs);
      if (result != CUDA_SUCCESS) return result;
      result = model(call, arguments...);
      Leave(call);
      return result;
    }
  }
  static CUresult Absent(void*, P...) noexcept { return CUDA_ERROR_NOT_SUPPORTED; }
};

// The models, declared with exactly the entry points' types; a definition api::X of another type does not compile.
namespace api {
#define CUAUDIT_SIM(id, model, needs) ModelOf<CallId::id>::Type model;
#include "faults/sim/bindings.def"
#undef CUAUDIT_SIM
}  // namespace api

}  // namespace cuaudit::sim
