// SPDX-License-Identifier: MIT
#include "allocator/lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace cuaudit::alloc {

bool MayRunBarrier() noexcept { return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0; }
bool RunBarrier() noexcept {
  const auto run = [] { return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0; };
  return run() || (MayRunBarrier() && run());  // a process restored from an image may not be registered any more
}

void Waiter::Pause() noexcept {
  constexpr int kSpins = 128, kYields = 16;
  constexpr long kShortest = 10'000, kLongest = 1'000'000;  // nanoseconds
  if (turn_ < kSpins) {
    ++turn_;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  } else if (turn_ < kSpins + kYields) {
    ++turn_;
    (void)sched_yield();
  } else {
    // The holder was interrupted, and yielding does not help it where this thread has the higher priority.
    sleep_ns_ = std::clamp(2 * sleep_ns_, kShortest, kLongest);
    const timespec span = {.tv_sec = 0, .tv_nsec = sleep_ns_};
    (void)nanosleep(&span, nullptr);
  }
}

#ifndef NDEBUG
namespace {

constexpr const char* kWhich[] = {
#define CUAUDIT_ALLOC_LOCK(rank, which, across_calls) which,
#include "allocator/lock_order.def"
#undef CUAUDIT_ALLOC_LOCK
};
constinit thread_local std::array<std::uint16_t, std::size(kWhich)> held_by_this_thread{};

}  // namespace

void Lock::CheckOrder(LockRank rank) noexcept {
  for (std::size_t later = static_cast<std::size_t>(rank); later < held_by_this_thread.size(); ++later) {
    if (held_by_this_thread[later] == 0) continue;
    std::fprintf(stderr, "allocator: %s is taken by a thread that holds %s: see lock_order.def\n", kWhich[static_cast<std::size_t>(rank)],
                 kWhich[later]);
    std::abort();
  }
}
void Lock::NoteTaken(LockRank rank) noexcept { ++held_by_this_thread[static_cast<std::size_t>(rank)]; }
void Lock::NoteLeft(LockRank rank) noexcept { --held_by_this_thread[static_cast<std::size_t>(rank)]; }
#endif

void Lock::Wait() noexcept {
  for (Waiter waiter;; waiter.Pause()) {
    if (!is_held_.load(std::memory_order_relaxed) && try_lock()) return;
  }
}

}  // namespace cuaudit::alloc
