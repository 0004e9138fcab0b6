// SPDX-License-Identifier: MIT
// entry.h: the code around every call, and what a fork and the exit of the process do to a world.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL before every include of this translation unit"
#endif

#include "driver_present.inc"
#include "faults/driver/call_shape.h"
#include "faults/driver/driver_ref.h"
#include "faults/sim/state/call.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

// What a fork and the exit of the process do to a world.
//
//   Threads   called without the world's lock, which any thread may have held at the fork.
//   Errors    UsableHere is false in a child forked after cuInit, and for a destroyed world; calls then return NOT_INITIALIZED.
//   Source    measured on an H200 (suites/contract, questions forked.* and exiting.*).

// Values of the mark in a world's first page.
inline constexpr std::uint32_t kWiped = 0;  // the kernel clears the page in a forked child
inline constexpr std::uint32_t kAlive = 1;
inline constexpr std::uint32_t kBeginning = 2;  // a thread of the child is deciding
inline constexpr std::uint32_t kDestroyed = 3;
inline constexpr std::uint32_t kRefused = 4;  // the parent had called cuInit before the fork

// False in a child that was forked after cuInit. If nobody had called cuInit, the world starts anew in the child, with its lock free.
bool UsableHere(World& world) noexcept;
// True in a child that was forked after cuInit, once UsableHere has answered false.
inline bool IsForkedChild(const World& world) noexcept { return world.alive->load(std::memory_order_acquire) == kRefused; }

// The few calls that a forked child can make with a stream of its parent. All other calls answer NOT_INITIALIZED there.
//
//   Threads   may be called by any thread of the child. When a thread of the parent held the world's lock at the fork, the answer is
//             NOT_INITIALIZED.
//   Source    measured on an H100 and an H200 (suites/contract, questions forked.*). What was not measured (default streams, captured
//             streams, streams of lost contexts, a wait for unfinished work) is refused.

// NOT_READY when a host function or a wait for a value was queued at the fork, because nobody can finish it here. A device finishes other
// work without the child.
CUresult QueryInherited(World& world, CUstream stream) noexcept;
CUresult SynchronizeInherited(World& world, CUstream stream) noexcept;
// SUCCESS, and the function never runs: the thread of the driver that would call it is the parent's.
CUresult LaunchInherited(World& world, CUstream stream) noexcept;
// SUCCESS, and whoever asks here is told NOT_READY from then on. A device reaches the event, and so does who waits for it.
CUresult RecordInherited(World& world, CUevent event, CUstream stream) noexcept;
// Not of an event that the parent has recorded and that was not reached at the fork.
CUresult QueryInherited(World& world, CUevent event) noexcept;
CUresult SynchronizeInherited(World& world, CUevent event) noexcept;
CUresult DestroyInherited(Call& call, CUevent event) noexcept;
// What kills the genuine driver.
CUresult DestroyInherited(Call& call, CUstream stream) noexcept;

// The code around every simulated call: it takes the lock, finds the calling thread, checks that the call is allowed, and runs the
// model.
//
//   ModelOf<id> its Type is the function type of the model of entry point `id`: a Call, then the entry point's parameters. bindings.def
//               binds models.
//   Threads     the model runs with the world's lock held.
//   Errors      checked in this order: DEINITIALIZED when the process exits; NOT_INITIALIZED before cuInit, or in a forked child where
//               UsableHere has no answer; NOT_PERMITTED inside a host function, unless AnswersInside; INVALID_CONTEXT without a context;
//               CONTEXT_IS_DESTROYED when the current context is gone; the sticky code of a lost context; STREAM_CAPTURE_UNSUPPORTED for
//               a call that is forbidden while a stream is captured, which also invalidates the capture.
//   Source      CUDA Driver API 13.0.

using driver::CallId;

inline constexpr unsigned kSecondInterface = 3020;  // CUDA 3.2

// What an entry point needs. verdict/context/put_back_calls.cc reads the same column: a row decides a verdict, too.
enum class Needs : std::uint8_t {
  Nothing,  // without the lock
  Lock,     // with the lock; callable before cuInit
  Init,
  Object,        // Init, and the current context is not dead or lost; without one, the object's context serves (Borrow) or none is needed
  UnsafeObject,  // Object, and forbidden while a stream is captured
  Context,       // Init, and a current, live context
  Unsafe,        // Context, and forbidden while a stream is captured
};

// Number of the device attribute that the entry point requires; 0: none.
constexpr int RequiredAttribute(driver::BaseId base) noexcept {
  switch (base) {
#define CUAUDIT_REQUIRES(base, number, name) \
  case driver::BaseId::base:                 \
    return number;
#include "faults/sim/entry/requirements.def"
#undef CUAUDIT_REQUIRES
    default:
      return 0;
  }
}

// True if a 32-bit entry point of the same name exists. A context made by that interface accepts only the 32-bit one.
constexpr bool HasOldTwin(driver::BaseId base) noexcept {
  switch (base) {
#define CUAUDIT_SIM_OLD(base) case driver::BaseId::base:
#include "faults/sim/entry/old_bindings.def"
#undef CUAUDIT_SIM_OLD
    return true;
    default:
      return false;
  }
}

// The only calls that a host function may make, as measured on an H200 (suites/contract, questions inside.*).
constexpr bool AnswersInside(driver::BaseId base) noexcept {
  return base == driver::BaseId::StreamQuery || base == driver::BaseId::EventQuery || base == driver::BaseId::EventRecord ||
         base == driver::BaseId::LaunchHostFunc;
}

CUresult Enter(Call& call, Needs needs, bool inside = false) noexcept;  // inside: see AnswersInside

// True when the stream ended with its context.
bool WentWithItsContext(World& world, CUstream stream) noexcept;

// The result when Enter refuses the call. Without a current context the genuine driver crashes on a kernel node, and in one that is gone on
// its streams and flags. Before cuInit a few calls check their first argument, and a few work with what a forked child has inherited.
template <CallId id, typename First, typename... P>
CUresult Refused([[maybe_unused]] Call& call, CUresult refusal, First first, [[maybe_unused]] P... others) noexcept {
  constexpr driver::BaseId base = driver::BaseOf(id);
  if constexpr (base == driver::BaseId::GraphAddKernelNode || base == driver::BaseId::GraphKernelNodeSetParams ||
                base == driver::BaseId::GraphExecKernelNodeSetParams) {
    if (refusal == CUDA_ERROR_INVALID_CONTEXT) return call.Undefined(refusal);
  }
  if constexpr (base == driver::BaseId::StreamDestroy) {
    if (refusal == CUDA_ERROR_CONTEXT_IS_DESTROYED && WentWithItsContext(call.world, first)) return call.Undefined(refusal);
  }
  if constexpr (base == driver::BaseId::CtxSetFlags) {
    if (refusal == CUDA_ERROR_CONTEXT_IS_DESTROYED) return call.Undefined(refusal);
  }
  if (refusal != CUDA_ERROR_NOT_INITIALIZED) return refusal;
  if constexpr (base == driver::BaseId::StreamQuery) return QueryInherited(call.world, first);
  if constexpr (base == driver::BaseId::StreamSynchronize) return SynchronizeInherited(call.world, first);
  if constexpr (base == driver::BaseId::LaunchHostFunc) return LaunchInherited(call.world, first);
  if constexpr (base == driver::BaseId::EventRecord) return RecordInherited(call.world, first, others...);
  if constexpr (base == driver::BaseId::EventQuery) return QueryInherited(call.world, first);
  if constexpr (base == driver::BaseId::EventSynchronize) return SynchronizeInherited(call.world, first);
  if constexpr (base == driver::BaseId::StreamDestroy || base == driver::BaseId::EventDestroy) {
    return first == nullptr ? CUDA_ERROR_INVALID_HANDLE : DestroyInherited(call, first);
  } else if constexpr (base == driver::BaseId::CtxDestroy || base == driver::BaseId::StreamCreate) {
    if (first == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  return refusal;
}
template <CallId id>
CUresult Refused(Call&, CUresult refusal) noexcept {
  return refusal;
}

void Leave(Call& call) noexcept;
// Raises SIGSEGV as a read through a pointer that leads nowhere does.
void Crash() noexcept;
// Logs a call that its model refused, and passes the line to the callbacks of cuLogsRegisterCallback, without holding the lock.
void LogRefusal(Call& call, CallId id, CUresult result) noexcept;

template <CallId id, typename F = typename driver::CallType<id>::Function>
struct ModelOf;
template <CallId id, typename... P>
struct ModelOf<id, CUresult(P...)> {
  using Type = CUresult(Call&, P...);
  // With the lock held, which Leave releases.
  template <Type* model>
  static CUresult Within(Call& call, P... arguments) noexcept {
    constexpr int required = RequiredAttribute(driver::BaseOf(id));
    CUresult result = CUDA_SUCCESS;
    if (required != 0 && call.world.profile->Attribute(required) == 0) {
      result = CUDA_ERROR_NOT_SUPPORTED;
    } else if (HasOldTwin(driver::BaseOf(id)) && call.context != nullptr && call.context->api_version < kSecondInterface) {
      result = CUDA_ERROR_INVALID_CONTEXT;
    } else {
      result = model(call, arguments...);
    }
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) LogRefusal(call, id, result);
    Leave(call);
    return result;
  }
  template <Needs needs, Type* model>
  static CUresult Entry(void* self, P... arguments) noexcept {
    Call call{*static_cast<World*>(self), nullptr, nullptr, driver::Row(id).per_thread};
    if constexpr (needs == Needs::Nothing) {
      if (call.world.closed.load(std::memory_order_relaxed)) return CUDA_ERROR_DEINITIALIZED;
      return model(call, arguments...);
    } else {
      CUresult result = Enter(call, needs, AnswersInside(driver::BaseOf(id)));
      if (result == CUDA_SUCCESS) {
        result = Within<model>(call, arguments...);
      } else {
        result = Refused<id>(call, result, arguments...);
      }
      if (call.undefined && call.world.undefined == OnUndefined::Crash) [[unlikely]]
        Crash();
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

// Declares the models with exactly the types of their entry points. A definition with another type does not compile.
namespace api {
#define CUAUDIT_SIM(id, model, needs) ModelOf<CallId::id>::Type model;
#define CUAUDIT_SIM_REFUSES CUAUDIT_SIM
#include "faults/sim/entry/bindings.def"
#undef CUAUDIT_SIM_REFUSES
#undef CUAUDIT_SIM
}  // namespace api

// The lines of log about refused calls, in this driver's own words: "cuMemAlloc_v2 answers CUDA_ERROR_INVALID_VALUE".
//
//   Threads   the caller holds the world's lock.
//   Errors    a line that is too long is cut.
//   Source    CUDA Driver API 13.0, Error Log Management Functions.

inline constexpr std::size_t kLongestLine = 128;  // with its end

// Writes the line, without a line break, and returns its length. `line` has room for kLongestLine characters.
std::size_t WriteRefusal(const RefusedCall& refusal, char* line) noexcept;

// The driver table that all simulated worlds share, made from bindings.def.

extern const driver::DriverTable kTable;

}  // namespace cuaudit::sim
