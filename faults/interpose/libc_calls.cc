// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/interpose/next_function.h"
#include "faults/interpose/process.h"
#include "faults/shim/stop_watch.h"

// The drop-in's exports _exit and _Exit, so that a process that runs no exit handlers still records that it chose to leave.
//
// Children of Python's multiprocessing, of shells and of most programs that fork end this way. The C library's exit does not call these
// functions; quick_exit runs a handler of the drop-in (process.cc). After vfork the child shares its parent's memory, so no state of the
// parent may be written; such a child is recognised by its process id.

namespace {

[[noreturn]] void Leave(int status) noexcept {
  cuaudit::faults::NoteLeaving();
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) void _exit(int status) { Leave(status); }
__attribute__((visibility("default"))) void _Exit(int status) noexcept { Leave(status); }
}

// The drop-in's exports sigaction, signal and their kin, which hide its handlers (faults/shim/stop_watch.h) from the
// program.
//
// The program sees the default disposition where a handler of the drop-in stands. A disposition that it sets back to the default gets the
// handler again. Without a journal each function is the C library's.

#define CUAUDIT_EXPORT extern "C" __attribute__((visibility("default")))

extern "C" int __sigaction(int, const struct sigaction*, struct sigaction*) noexcept;

extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __tsan_init();
}

namespace {

using cuaudit::faults::IsWatched;
using cuaudit::faults::IsWatchHandler;
using cuaudit::faults::Next;
using Handler = void (*)(int);

// What the program set with the default disposition: flags and mask, which it may ask for.
constinit struct sigaction shown[NSIG] = {};

// After the C library's function `call` has set the disposition.
template <typename Set>
Handler Shown(int signal, Handler wanted, const Set& set) noexcept {
  const Handler before = set();
  if (!IsWatched(signal) || before == SIG_ERR) return before;
  if (wanted == SIG_DFL) {
    const struct sigaction watch = cuaudit::faults::WatchAction(signal);
    __sigaction(signal, &watch, nullptr);
  }
  cuaudit::faults::NoteDisposition(signal, wanted == SIG_DFL);
  struct sigaction was = {};
  was.sa_handler = before;
  return IsWatchHandler(was) ? SIG_DFL : before;
}

}  // namespace

bool cuaudit::faults::SignalCallsAreOurs() noexcept {
  if (&__asan_init != nullptr || &__tsan_init != nullptr) return true;  // their wrappers call these
  return dlsym(RTLD_DEFAULT, "sigaction") == reinterpret_cast<void*>(&sigaction);
}

CUAUDIT_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  if (!IsWatched(signal)) return __sigaction(signal, action, old);
  const bool back = action != nullptr && action->sa_handler == SIG_DFL;
  struct sigaction given = {};
  struct sigaction before = {};
  if (action != nullptr) given = back ? cuaudit::faults::WatchAction(signal) : *action;
  const int result = __sigaction(signal, action == nullptr ? nullptr : &given, &before);
  if (result != 0) return result;
  if (old != nullptr) *old = IsWatchHandler(before) ? shown[signal] : before;
  if (back) shown[signal] = *action;
  if (action != nullptr) cuaudit::faults::NoteDisposition(signal, back);
  return 0;
}

#define CUAUDIT_SIGNAL(name)                                                            \
  CUAUDIT_EXPORT Handler name(int signal, Handler handler) noexcept {                   \
    static Handler (*next)(int, Handler) = nullptr;                                     \
    return Shown(signal, handler, [=] { return Next(&next, #name)(signal, handler); }); \
  }

CUAUDIT_SIGNAL(signal)
CUAUDIT_SIGNAL(ssignal)
CUAUDIT_SIGNAL(bsd_signal)
CUAUDIT_SIGNAL(sysv_signal)
CUAUDIT_SIGNAL(__sysv_signal)
#undef CUAUDIT_SIGNAL

CUAUDIT_EXPORT int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
  static int (*next)(const stack_t*, stack_t*) = nullptr;
  const int result = Next(&next, "sigaltstack")(stack, old);
  if (result == 0 && old != nullptr && cuaudit::faults::IsWatchStack(old->ss_sp)) *old = {nullptr, SS_DISABLE, 0};
  return result;
}
