// SPDX-License-Identifier: MIT
// lock.h: a mutex that spins for a moment before it sleeps, for sections of some ten nanoseconds.
//
//   Owns      nothing beyond itself.
//   Threads   as std::mutex. Never held across a driver call, except `Arena::growing`, which only other growers wait for.
//   Faults    makes no driver calls.
#pragma once

#include <mutex>

namespace cuaudit::alloc {

class Lock {
 public:
  void lock() noexcept {
    for (int turn = 0; turn < 64; ++turn) {
      if (mutex_.try_lock()) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    mutex_.lock();
  }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

using Held = std::lock_guard<Lock>;

}  // namespace cuaudit::alloc
