// SPDX-License-Identifier: MIT
// dlopen references and mutexes. Source: pthread_mutex_t::__data.__lock for "locked".
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

#include "faults/interpose/host_dlopen.h"
#include "faults/interpose/host_state.h"
#include "faults/interpose/mutex_table.h"

using namespace cuaudit::faults;

#define CUAUDIT_EXPORT extern "C" __attribute__((visibility("default")))

static int (*next_mutex_init)(pthread_mutex_t*, const pthread_mutexattr_t*);
static int (*next_mutex_destroy)(pthread_mutex_t*);

static void* Loaded(void* handle, const void* caller) noexcept {
  if (handle != nullptr && Watching() && !IsTheProgram(handle)) Write(HostCall::Dlopen, Address(handle), LoadedObjectOf(caller));
  return handle;
}

CUAUDIT_EXPORT void* dlopen(const char* file, int flags) {
  const void* const caller = __builtin_return_address(0);
  return Loaded(OpenAsCaller(file, flags, caller), caller);
}

CUAUDIT_EXPORT void* dlmopen(Lmid_t space, const char* file, int flags) {
  const void* const caller = __builtin_return_address(0);
  return Loaded(OpenAsCaller(space, file, flags, caller), caller);
}

CUAUDIT_EXPORT int dlclose(void* handle) noexcept {
  if (Watching()) Write(HostCall::Dlclose, Address(handle), LoadedObjectOf(__builtin_return_address(0)));
  return NextDlclose(handle);
}

CUAUDIT_EXPORT int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) noexcept {
  const int result = Next(&next_mutex_init, "pthread_mutex_init")(mutex, attributes);
  if (result == 0 && Watching()) {
    if constexpr (kWithHeap) FollowMutex(Address(mutex));
    Write(HostCall::MutexInit, Address(mutex), 0);
  }
  return result;
}

CUAUDIT_EXPORT int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept {
  if (Watching()) {
    const bool locked = MutexTable::Locked(Address(mutex));
    if constexpr (kWithHeap) LeaveMutex(Address(mutex));
    Write(locked ? HostCall::MutexDestroyedLocked : HostCall::MutexDestroy, Address(mutex), 0);
  }
  return Next(&next_mutex_destroy, "pthread_mutex_destroy")(mutex);
}
