// SPDX-License-Identifier: MIT
#include "allocator/lock.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

namespace cuaudit::alloc {

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

void Lock::Wait() noexcept {
  for (Waiter waiter;; waiter.Pause()) {
    if (!is_held_.load(std::memory_order_relaxed) && try_lock()) return;
  }
}

}  // namespace cuaudit::alloc
