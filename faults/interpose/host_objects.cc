// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "faults/interpose/host_objects.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "faults/interpose/host_callers.h"
#include "faults/interpose/host_state.h"
#include "faults/interpose/host_tables.h"
#include "faults/interpose/next_function.h"
#include "faults/probes/host_reading.h"

namespace cuaudit::faults {

namespace {

using Dlopen = void* (*)(const char*, int);
using Dlmopen = void* (*)(Lmid_t, const char*, int);
using Dlclose = int (*)(void*);

Dlopen NextDlopen() noexcept {
  static Dlopen next = nullptr;
  if (next == nullptr) next = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
  return next;
}

Dlmopen NextDlmopen() noexcept {
  static Dlmopen next = nullptr;
  if (next == nullptr) next = reinterpret_cast<Dlmopen>(dlsym(RTLD_NEXT, "dlmopen"));
  return next;
}

// Value of LD_LIBRARY_PATH when the loader read it.
char library_path[2 * PATH_MAX];

struct SearchPaths {
  const char* r_path = nullptr;  // used only when there is no run_path
  const char* run_path = nullptr;
};

SearchPaths PathsOf(const link_map& map) noexcept {
  const char* strings = nullptr;
  ElfW(Xword) run_path = 0;
  ElfW(Xword) r_path = 0;
  for (const ElfW(Dyn)* row = map.l_ld; row->d_tag != DT_NULL; ++row) {
    if (row->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(row->d_un.d_ptr);
    if (row->d_tag == DT_RUNPATH) run_path = row->d_un.d_val;
    if (row->d_tag == DT_RPATH) r_path = row->d_un.d_val;
  }
  SearchPaths paths;
  if (strings == nullptr) return paths;
  if (run_path != 0) paths.run_path = strings + run_path;
  if (run_path == 0 && r_path != 0) paths.r_path = strings + r_path;
  return paths;
}

// Builds the path of `file` in `directory`. "$ORIGIN" and "${ORIGIN}" stand for the object's directory. False when the result does not
// fit.
bool Expand(const char* directory, std::size_t length, const char* origin, const char* file, char* out, std::size_t capacity) noexcept {
  std::size_t used = 0;
  const auto put = [&](const char* text, std::size_t bytes) {
    if (used + bytes >= capacity) return false;
    memcpy(out + used, text, bytes);
    used += bytes;
    return true;
  };
  if (length == 0 && !put(".", 1)) return false;  // an empty entry is the current directory
  const char* slash = strrchr(origin, '/');
  const std::size_t origin_length = slash == nullptr ? 0 : static_cast<std::size_t>(slash - origin);
  for (std::size_t i = 0; i < length;) {
    const std::size_t token = strncmp(directory + i, "${ORIGIN}", 9) == 0 ? 9 : strncmp(directory + i, "$ORIGIN", 7) == 0 ? 7 : 0;
    if (!(token != 0 ? put(origin, origin_length) : put(directory + i, 1))) return false;
    i += token != 0 ? token : 1;
  }
  return put("/", 1) && put(file, strlen(file) + 1);
}

// Calls `visit` with the path of `file` in each directory of `list`, until it returns true.
template <typename Visit>
bool AnyIn(const char* list, const char* separators, const char* origin, const char* file, const Visit& visit) noexcept {
  for (const char* at = list; *at != '\0';) {
    const std::size_t length = strcspn(at, separators);
    char path[PATH_MAX];
    if (Expand(at, length, origin, file, path, sizeof(path)) && access(path, R_OK) == 0 && visit(path)) return true;
    at += length;
    if (*at != '\0') ++at;
  }
  return false;
}

}  // namespace

void RememberLibraryPath() noexcept {
  const char* value = getenv("LD_LIBRARY_PATH");
  // A longer LD_LIBRARY_PATH is ignored here; the loader still follows it, after the caller's own path.
  if (value != nullptr && strlen(value) < sizeof(library_path)) strcpy(library_path, value);
}

// `next` opens a path with the C library's function. `loaded` finds the object that is loaded under a name, or returns null.
template <typename Next, typename Loaded>
static void* Open(const char* file, int flags, const void* caller, const Next& next, const Loaded& loaded) noexcept {
  Dl_info info;
  void* found = nullptr;
  if (file == nullptr || file[0] == '\0' || strchr(file, '/') != nullptr || dladdr1(caller, &info, &found, RTLD_DL_LINKMAP) == 0 ||
      found == nullptr) {
    return next(file, flags);
  }
  const link_map& map = *static_cast<const link_map*>(found);
  const SearchPaths paths = PathsOf(map);
  if (paths.r_path == nullptr && paths.run_path == nullptr) return next(file, flags);
  if (void* const there = loaded(file, flags | RTLD_NOLOAD)) return there;
  char executable[PATH_MAX];
  const ssize_t length = readlink("/proc/thread-self/exe", executable, sizeof(executable) - 1);
  executable[length > 0 ? length : 0] = '\0';
  const char* origin = map.l_name == nullptr || map.l_name[0] == '\0' ? executable : map.l_name;
  void* handle = nullptr;
  const auto open = [&](const char* path) { return (handle = next(path, flags)) != nullptr; };
  const auto is_there = [](const char*) { return true; };
  if (paths.r_path != nullptr && AnyIn(paths.r_path, ":", origin, file, open)) return handle;
  if (paths.run_path != nullptr && !AnyIn(library_path, ":;", executable, file, is_there) &&
      AnyIn(paths.run_path, ":", origin, file, open)) {
    return handle;
  }
  return next(file, flags);
}

void* OpenAsCaller(const char* file, int flags, const void* caller) noexcept {
  return Open(file, flags, caller, NextDlopen(), NextDlopen());
}

void* OpenAsCaller(std::int64_t space, const char* file, int flags, const void* caller) noexcept {
  const auto next = [space](const char* path, int how) { return NextDlmopen()(static_cast<Lmid_t>(space), path, how); };
  const auto loaded = [&](const char* path, int how) { return space == LM_ID_NEWLM ? nullptr : next(path, how); };
  return Open(file, flags, caller, next, loaded);
}

bool IsTheProgram(void* handle) noexcept {
  const auto& map = *static_cast<const link_map*>(handle);
  return map.l_prev == nullptr && map.l_name != nullptr && map.l_name[0] == '\0';
}

int NextDlclose(void* handle) noexcept {
  static Dlclose next = nullptr;
  if (next == nullptr) next = reinterpret_cast<Dlclose>(dlsym(RTLD_NEXT, "dlclose"));
  return next(handle);
}

std::uint64_t LoadedObjectOf(const void* caller) noexcept {
  Dl_info info;
  return dladdr(caller, &info) == 0 ? 0 : reinterpret_cast<std::uint64_t>(info.dli_fbase);
}

// Records joinable threads: from pthread_create (which std::thread calls) or C11's thrd_create until they are joined or detached.

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

// dlopen references and mutexes. Source: pthread_mutex_t::__data.__lock for "locked".

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
  Record* const record = Watching() ? Reserve(HostCall::Dlclose, Address(handle), LoadedObjectOf(__builtin_return_address(0))) : nullptr;
  const int result = NextDlclose(handle);
  if (record != nullptr) {
    record->argument[2] = result == 0 ? 1 : 0;  // the loader refuses what is not open
    Finish(record);
  }
  return result;
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
    Record* const record = Reserve(locked ? HostCall::MutexDestroyedLocked : HostCall::MutexDestroy, Address(mutex), 0);
    if (record != nullptr) record->argument[2] = MutexTable::Destroyed(Address(mutex)) ? 0 : 1;
    Finish(record);
  }
  return Next(&next_mutex_destroy, "pthread_mutex_destroy")(mutex);
}

// Joinable threads: from pthread_create (which std::thread calls) or C11's thrd_create until they are joined or detached.
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
