// SPDX-License-Identifier: MIT
// call.h: the call in progress, as every model of an entry point sees it.
//
//   Threads   the caller holds the world's lock.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "define __CUDA_API_VERSION_INTERNAL before every include of this translation unit"
#endif

#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {

using driver::Kind;

struct Call {
  World& world;
  Thread* thread;
  Context* context;  // the current context; null unless `needs` asks for one, and with Needs::Object if none is current
  bool per_thread;   // called through a _ptsz or _ptds entry point: stream 0 is the per-thread default stream

  // What kills the genuine driver: a use of which every recorded run of an H200 died (suites/contract/differences.def, Crashes). Only these
  // say that a call is one; the code around every call (entry.h) acts on it when the call is over.
  bool undefined = false;
  CUresult Undefined(CUresult answer) noexcept {
    undefined = true;
    return answer;
  }
  // The live object behind a handle that the genuine driver follows without asking whether it is one: undefined when it names nothing. A
  // null handle, and one whose object ended with its context, are known there, but for those with a kLostNote.
  template <typename T, typename Handle>
  T* Follow(Handle* handle) noexcept {
    T* const object = world.Find<T>(handle);
    if (object == nullptr && (world.handles.NamesNothing(reinterpret_cast<std::uintptr_t>(handle)) || IsLost(handle))) undefined = true;
    return object;
  }
  // The same where the genuine driver finds an answer in what a destroyed object has left behind: only a handle that was never handed out
  // is undefined.
  template <typename T, typename Handle>
  T* Read(Handle* handle) noexcept {
    return world.Destroyed(handle) ? nullptr : Follow<T>(handle);
  }
  template <typename Handle>
  bool IsLost(Handle* handle) const noexcept {
    return world.handles.NoteOf(reinterpret_cast<std::uintptr_t>(handle)) == HandleTable::kLostNote;
  }
  // The answer for a handle that names nothing: whether its context is to blame.
  template <typename Handle>
  CUresult Gone(Handle* handle) noexcept {
    undefined = undefined || IsLost(handle);
    return world.DiedWithContext(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
  }
};

// For models that need an object: if no context is current, the object's context becomes current. Returns its sticky code, if it has one.
inline CUresult Borrow(Call& call, Context* owner) noexcept {
  if (call.context != nullptr || owner == nullptr) return CUDA_SUCCESS;
  call.context = owner;
  return owner->sticky;
}

}  // namespace cuaudit::sim
