// SPDX-License-Identifier: MIT
// Records joinable threads: from pthread_create (which std::thread calls) or C11's thrd_create until they are joined or detached.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <threads.h>
#include <time.h>

#include <atomic>

#include "faults/interpose/host_oom.h"
#include "faults/interpose/host_state.h"
#include "faults/probes/host_reading.h"

namespace cuaudit::faults {
namespace {

bool IsDetached(const pthread_attr_t* attributes) noexcept {
  int state = PTHREAD_CREATE_JOINABLE;
  return attributes != nullptr && pthread_attr_getdetachstate(attributes, &state) == 0 && state == PTHREAD_CREATE_DETACHED;
}

// Number of joinable threads of the program's own modules. A driver keeps its threads.
constinit std::atomic<int64_t> owed_threads{0};

uint64_t NowUs() noexcept {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

bool OthersRun() noexcept {
  const HostReading reading = ReadHost({HostMeter::Threads});
  return reading.read.Has(HostMeter::Threads) && reading[HostMeter::Threads] > 1;
}

}  // namespace

void AwaitDetaching() noexcept {
  constexpr uint64_t kPatienceUs = 50000;
  const Quiet quiet;
  uint64_t until = 0;
  while (owed_threads.load(std::memory_order_relaxed) > 0 && OthersRun()) {
    const uint64_t now = NowUs();
    if (until == 0) until = now + kPatienceUs;
    if (now >= until) return;
    sched_yield();
  }
}

void ForgetThreads() noexcept { owed_threads.store(0, std::memory_order_relaxed); }

}  // namespace cuaudit::faults

using namespace cuaudit::faults;

#define CUAUDIT_WRAP(name, parameters)                                                            \
  extern "C" __attribute__((visibility("default"))) int wrapped_##name parameters __asm__(#name); \
  static int(*next_##name##_) parameters;                                                         \
  extern "C" int wrapped_##name parameters

// Begins the record before the thread starts, so that the records of the thread itself come later. A detached thread need not be joined;
// its record only says that it was the n-th request.
template <typename Start>
static int Started(bool owed, Turn turn, const Start& start) {
  Record* const record = Watching() && (owed || turn.occurrence != 0) ? Reserve(HostCall::ThreadCreate, 0, 0) : nullptr;
  if (record == nullptr) return start(nullptr);
  record->occurrence = turn.occurrence;
  const bool counts = owed && turn.occurrence != 0;
  if (counts) owed_threads.fetch_add(1, std::memory_order_relaxed);
  const int result = start(owed ? &record->argument[0] : nullptr);
  if (result == 0) {
    Finish(record);
  } else {
    if (counts) owed_threads.fetch_sub(1, std::memory_order_relaxed);
    Withdraw(record);
  }
  return result;
}

CUAUDIT_WRAP(pthread_create, (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument)) {
  const Turn turn = TakeThreadTurn(__builtin_return_address(0));
  if (turn.refused) return EAGAIN;
  return Started(!IsDetached(attributes), turn, [&](uint64_t* name) {
    const int result = Next(&next_pthread_create_, "pthread_create")(thread, attributes, start, argument);
    if (result == 0 && name != nullptr) *name = static_cast<uint64_t>(*thread);
    return result;
  });
}

CUAUDIT_WRAP(thrd_create, (thrd_t * thread, thrd_start_t start, void* argument)) {
  const Turn turn = TakeThreadTurn(__builtin_return_address(0));
  if (turn.refused) return thrd_error;
  return Started(true, turn, [&](uint64_t* name) {
    const int result = Next(&next_thrd_create_, "thrd_create")(thread, start, argument);
    if (result == thrd_success && name != nullptr) *name = static_cast<uint64_t>(*thread);
    return result;
  });
}
static_assert(thrd_success == 0);

// After a join another thread may have the same pthread_t at once. So the record is begun before the join, and withdrawn when the join
// fails.
static int Settled(Record* record, int result, const void* caller) {
  if (result != 0) {
    Withdraw(record);
  } else if (record != nullptr) {
    Finish(record);
    if (IsTheProgramsOwn(caller)) owed_threads.fetch_sub(1, std::memory_order_relaxed);
  }
  return result;
}

#define CUAUDIT_JOINS(name, parameters, arguments)                                                           \
  CUAUDIT_WRAP(name, parameters) {                                                                           \
    Record* record = Watching() ? Reserve(HostCall::ThreadJoin, static_cast<uint64_t>(thread), 0) : nullptr; \
    return Settled(record, Next(&next_##name##_, #name) arguments, __builtin_return_address(0));             \
  }

CUAUDIT_JOINS(pthread_join, (pthread_t thread, void** answer), (thread, answer))
CUAUDIT_JOINS(pthread_tryjoin_np, (pthread_t thread, void** answer), (thread, answer))
CUAUDIT_JOINS(pthread_timedjoin_np, (pthread_t thread, void** answer, const timespec* until), (thread, answer, until))
CUAUDIT_JOINS(pthread_clockjoin_np, (pthread_t thread, void** answer, clockid_t clock, const timespec* until),
              (thread, answer, clock, until))
CUAUDIT_JOINS(thrd_join, (thrd_t thread, int* answer), (thread, answer))

#define CUAUDIT_DETACHES(name)                                                                                              \
  CUAUDIT_WRAP(name, (pthread_t thread)) {                                                                                  \
    const HostCall call = pthread_equal(thread, pthread_self()) != 0 ? HostCall::ThreadDetachSelf : HostCall::ThreadDetach; \
    Record* record = Watching() ? Reserve(call, static_cast<uint64_t>(thread), 0) : nullptr;                                \
    return Settled(record, Next(&next_##name##_, #name)(thread), __builtin_return_address(0));                              \
  }

CUAUDIT_DETACHES(pthread_detach)
CUAUDIT_DETACHES(thrd_detach)
