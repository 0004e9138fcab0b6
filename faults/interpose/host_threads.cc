// SPDX-License-Identifier: MIT
// Threads that somebody must join: from pthread_create until they are joined or detached. std::thread comes here too; C11's thrd_create
// does not, and is only in the number of threads.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "faults/interpose/host_oom.h"
#include "faults/interpose/host_state.h"

namespace cuaudit::faults {
namespace {

bool IsDetached(const pthread_attr_t* attributes) noexcept {
  int state = PTHREAD_CREATE_JOINABLE;
  return attributes != nullptr && pthread_attr_getdetachstate(attributes, &state) == 0 && state == PTHREAD_CREATE_DETACHED;
}

}  // namespace
}  // namespace cuaudit::faults

using namespace cuaudit::faults;

#define CUAUDIT_WRAP(name, parameters)                                                            \
  extern "C" __attribute__((visibility("default"))) int wrapped_##name parameters __asm__(#name); \
  static int(*next_##name##_) parameters;                                                         \
  extern "C" int wrapped_##name parameters

// The record is begun before the thread: whatever it does itself comes after. Nobody owes a detached thread; its record says only that it
// was the n-th that was asked for.
CUAUDIT_WRAP(pthread_create, (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument)) {
  const Turn turn = TakeThreadTurn(__builtin_return_address(0));
  if (turn.refused) return EAGAIN;
  const bool owed = !IsDetached(attributes);
  Record* record = Watching() && (owed || turn.occurrence != 0) ? Reserve(HostCall::ThreadCreate, 0, 0) : nullptr;
  if (record != nullptr) record->occurrence = turn.occurrence;
  const int result = Next(&next_pthread_create_, "pthread_create")(thread, attributes, start, argument);
  if (result == 0 && record != nullptr) {
    if (owed) record->argument[0] = static_cast<uint64_t>(*thread);
    Finish(record);
  } else {
    Withdraw(record);
  }
  return result;
}

// When a thread was joined its name may be another's at once, so the record is begun before, and withdrawn when nothing came of it.
#define CUAUDIT_JOINS(name, parameters, arguments)                                                           \
  CUAUDIT_WRAP(name, parameters) {                                                                           \
    Record* record = Watching() ? Reserve(HostCall::ThreadJoin, static_cast<uint64_t>(thread), 0) : nullptr; \
    const int result = Next(&next_##name##_, #name) arguments;                                               \
    if (result == 0) {                                                                                       \
      Finish(record);                                                                                        \
    } else {                                                                                                 \
      Withdraw(record);                                                                                      \
    }                                                                                                        \
    return result;                                                                                           \
  }

CUAUDIT_JOINS(pthread_join, (pthread_t thread, void** answer), (thread, answer))
CUAUDIT_JOINS(pthread_tryjoin_np, (pthread_t thread, void** answer), (thread, answer))
CUAUDIT_JOINS(pthread_timedjoin_np, (pthread_t thread, void** answer, const timespec* until), (thread, answer, until))
CUAUDIT_JOINS(pthread_clockjoin_np, (pthread_t thread, void** answer, clockid_t clock, const timespec* until),
              (thread, answer, clock, until))

CUAUDIT_WRAP(pthread_detach, (pthread_t thread)) {
  const HostCall call = pthread_equal(thread, pthread_self()) != 0 ? HostCall::ThreadDetachSelf : HostCall::ThreadDetach;
  Record* record = Watching() ? Reserve(call, static_cast<uint64_t>(thread), 0) : nullptr;
  const int result = Next(&next_pthread_detach_, "pthread_detach")(thread);
  if (result == 0) {
    Finish(record);
  } else {
    Withdraw(record);
  }
  return result;
}
