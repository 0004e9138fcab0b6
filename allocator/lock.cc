// SPDX-License-Identifier: MIT
#include "allocator/lock.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

namespace cuaudit::alloc {

void Lock::Wait() noexcept {
  constexpr int kSpins = 128, kYields = 16;
  constexpr long kShortest = 10'000, kLongest = 1'000'000;  // nanoseconds
  long sleep = kShortest;
  for (int turn = 0;; ++turn) {
    if (!is_held_.load(std::memory_order_relaxed) && try_lock()) return;
    if (turn < kSpins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (turn < kSpins + kYields) {
      (void)sched_yield();
    } else {
      // The holder was interrupted, and yielding does not help it where this thread has the higher priority.
      const timespec span = {.tv_sec = 0, .tv_nsec = sleep};
      (void)nanosleep(&span, nullptr);
      sleep = std::min(2 * sleep, kLongest);
    }
  }
}

}  // namespace cuaudit::alloc
