// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/shim/stop_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "faults/shim/thread_identity.h"

// The C library's own: `sigaction` may be a wrapper that hides the watch, or a sanitizer's.
extern "C" int __sigaction(int, const struct sigaction*, struct sigaction*) noexcept;

namespace cuaudit::faults {
namespace {

constexpr int kDeadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
constexpr std::size_t kSignalStackBytes = 64 << 10;
constexpr int kPatienceMs = 300;  // for the other threads to tell where they are

constinit Journal* journal = nullptr;
constinit StackTable* stacks = nullptr;
constinit std::atomic<pid_t> own_pid{0};  // the process that owns this memory
constinit std::atomic<pid_t> dying{0};    // the thread that tells of its death
constinit std::atomic<int> deadly{0};     // and of which signal
constinit std::atomic<pid_t> asking{0};   // the thread that answers for its process
constinit std::atomic<int> answered{0};   // threads that have told their place
alignas(16) constinit char signal_stack[kSignalStackBytes] = {};

pid_t ProcessId() noexcept { return static_cast<pid_t>(syscall(SYS_getpid)); }
pid_t ThreadId() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// The call under way of this thread has no record, because a recording only counts it: one is written now. Answers its ticket, or 0.
std::uint64_t WriteCallUnderWay() noexcept {
  if (thread_state.asking == 0) return 0;
  Record* const record = journal->Begin(true);
  if (record == nullptr) return 0;
  record->kind = RecordKind::Call;
  record->call = static_cast<std::uint16_t>(thread_state.asking - 1);
  record->pid = Pid();
  record->tid = Tid();
  record->cycle = journal->header().cycle.load(std::memory_order_relaxed);
  record->flags = kForwarded;
  journal->Entered(record);
  return record->begin;
}

void WriteStop(int signal, const siginfo_t& info, void* context) noexcept {
  if (const std::uint64_t begin = WriteCallUnderWay(); begin != 0) thread_state.begin = begin;
  Record* const record = journal->Begin();
  if (record == nullptr) return;
  const JournalHeader& header = journal->header();
  record->kind = RecordKind::Stop;
  record->call = static_cast<std::uint16_t>(signal);
  record->pid = Pid();
  record->tid = Tid();
  record->cycle = header.cycle.load(std::memory_order_relaxed);
  record->phase = static_cast<Phase>(header.phase.load(std::memory_order_relaxed));
  const bool faulted = signal != 0 && info.si_code > 0 && signal != SIGTRAP && signal != SIGSYS;
  const bool accessed = faulted && (signal == SIGSEGV || signal == SIGBUS);
  const void* const fault = accessed && info.si_code != SI_KERNEL ? info.si_addr : nullptr;
  const Interruption how = faulted ? Interruption::Fault : signal != 0 && info.si_code <= 0 ? Interruption::Raised : Interruption::After;
  record->argument[0] = static_cast<std::uint64_t>(static_cast<std::int64_t>(info.si_code));
  record->argument[1] = reinterpret_cast<std::uintptr_t>(fault);
  record->argument[2] = InterruptedStackPointer(context);
  record->argument[3] = thread_state.inside == nullptr ? 0 : thread_state.begin;
  record->stack = stacks->CaptureInterrupted(context, how, fault);
  journal->Finish(record);
}

// Ends the process as without the watch. A fault of the processor repeats when the handler returns, so that a core shows the faulting
// instruction; any other signal is sent again.
void DieOf(int signal, bool repeats) noexcept {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  __sigaction(signal, &action, nullptr);
  if (!repeats) syscall(SYS_tgkill, ProcessId(), ThreadId(), signal);
}

void SleepMs(long milliseconds) noexcept {
  timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  syscall(SYS_nanosleep, &pause, nullptr);
}

void OnDeath(int signal, siginfo_t* info, void* context) noexcept {
  const int saved = errno;
  const pid_t self = ThreadId();
  const bool repeats = info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL);
  pid_t teller = 0;
  if (ProcessId() != own_pid.load(std::memory_order_relaxed)) {
    // The child of a vfork: this memory is its parent's.
  } else if (dying.compare_exchange_strong(teller, self, std::memory_order_acq_rel)) {
    deadly.store(signal, std::memory_order_relaxed);
    WriteStop(signal, *info, context);
  } else if (teller == self) {
    // Taking the stack failed. The record stands without one.
    DieOf(deadly.load(std::memory_order_relaxed), false);
  } else {
    SleepMs(kPatienceMs);  // the signal of the other thread ends the process meanwhile
  }
  DieOf(signal, repeats);
  errno = saved;
}

// Asks each other thread of the process where it is. Answers how many were asked.
int AskOthers(int signal) noexcept {
  struct Entry {
    std::uint64_t inode;
    std::int64_t next;
    std::uint16_t bytes;
    std::uint8_t type;
    char name[1];
  };
  const auto directory = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory < 0) return 0;
  int asked = 0;
  alignas(Entry) char entries[4096];
  for (long bytes = 0; (bytes = syscall(SYS_getdents64, directory, entries, sizeof(entries))) > 0;) {
    for (long at = 0; at < bytes;) {
      const Entry* const entry = reinterpret_cast<const Entry*>(entries + at);
      const auto thread = static_cast<pid_t>(atoi(entries + at + offsetof(Entry, name)));
      if (thread > 0 && thread != ThreadId() && syscall(SYS_tgkill, ProcessId(), thread, signal) == 0) ++asked;
      at += entry->bytes;
    }
  }
  syscall(SYS_close, directory);
  return asked;
}

[[noreturn]] void StandStill() noexcept {
  for (;;) SleepMs(1000);
}

void OnRequest(int signal, siginfo_t* info, void* context) noexcept {
  const bool own = ProcessId() == own_pid.load(std::memory_order_relaxed);
  pid_t nobody = 0;
  if (own && info->si_code == SI_TKILL && info->si_pid == ProcessId() && asking.load(std::memory_order_acquire) != 0) {
    WriteStop(0, *info, context);
    answered.fetch_add(1, std::memory_order_acq_rel);
    StandStill();
  }
  if (!own || info->si_code != SI_QUEUE || info->si_value.sival_int != kStopRequest) {
    DieOf(signal, false);  // the default disposition
    return;
  }
  if (!asking.compare_exchange_strong(nobody, ThreadId(), std::memory_order_acq_rel)) StandStill();
  WriteStop(0, *info, context);
  const int asked = AskOthers(signal);
  for (int i = 0; i < kPatienceMs && answered.load(std::memory_order_acquire) < asked; ++i) SleepMs(1);
  syscall(SYS_kill, ProcessId(), SIGKILL);
  StandStill();
}

}  // namespace

bool IsWatched(int signal) noexcept {
  if (journal == nullptr) return false;
  for (const int one : kDeadly) {
    if (one == signal) return true;
  }
  return signal == StopRequestSignal();
}

bool IsWatchHandler(const struct sigaction& action) noexcept {
  return action.sa_sigaction == &OnDeath || action.sa_sigaction == &OnRequest;
}

struct sigaction WatchAction(int signal) noexcept {
  struct sigaction action = {};
  const bool request = signal == StopRequestSignal();
  action.sa_sigaction = request ? &OnRequest : &OnDeath;
  // A fault while the stack is taken must reach the handler, too; no other signal may.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | (request ? SA_RESTART : SA_NODEFER);
  sigfillset(&action.sa_mask);
  for (const int one : kDeadly) sigdelset(&action.sa_mask, one);
  return action;
}

void NoteDisposition(int signal, bool watched) noexcept {
  if (signal != StopRequestSignal()) return;
  std::atomic<std::uint32_t>& flags = journal->header().flags;
  watched ? flags.fetch_or(kTellsStops, std::memory_order_relaxed) : flags.fetch_and(~kTellsStops, std::memory_order_relaxed);
}

bool IsWatchStack(const void* of) noexcept { return of == signal_stack; }

void WatchStops(Journal* to, StackTable* table) noexcept {
  journal = to;
  stacks = table;
  WatchStopsInChild();
  stack_t now = {};
  // System calls, because the C library's function may be wrapped.
  if (syscall(SYS_sigaltstack, nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) != 0) {
    const stack_t own = {signal_stack, 0, sizeof(signal_stack)};
    syscall(SYS_sigaltstack, &own, nullptr);
  }
  const auto watch = [](int signal) {
    struct sigaction before = {};
    if (__sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
    const struct sigaction action = WatchAction(signal);
    __sigaction(signal, &action, nullptr);
    NoteDisposition(signal, true);
  };
  for (const int signal : kDeadly) watch(signal);
  watch(StopRequestSignal());
}

void WatchStopsInChild() noexcept {
  own_pid.store(ProcessId(), std::memory_order_relaxed);
  dying.store(0, std::memory_order_relaxed);
  asking.store(0, std::memory_order_relaxed);
  answered.store(0, std::memory_order_relaxed);
}

}  // namespace cuaudit::faults
