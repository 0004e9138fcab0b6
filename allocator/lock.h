// SPDX-License-Identifier: MIT
// lock.h: a mutex for sections of some ten nanoseconds: one locked instruction, inline.
//
//   Owns      nothing beyond itself.
//   Threads   as std::mutex. Whoever finds it held spins for a moment, then sleeps ever longer, up to a millisecond: so leaving costs a
//             plain store, and a holder of any priority gets the processor. Which are held across driver calls, core.h says.
//   Faults    makes no driver calls.
#pragma once

#include <atomic>
#include <mutex>

namespace cuaudit::alloc {

// One who waits: each Pause is longer than the one before.
class Waiter {
 public:
  void Pause() noexcept;

 private:
  int turn_ = 0;
  long sleep_ns_ = 0;
};

class Lock {
 public:
  bool try_lock() noexcept {
    return !is_held_.exchange(true, std::memory_order_acquire);  // needs no load first, as comparing would
  }
  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      Wait();
  }
  void unlock() noexcept { is_held_.store(false, std::memory_order_release); }

 private:
  void Wait() noexcept;

  std::atomic<bool> is_held_{false};
};

using Held = std::lock_guard<Lock>;

}  // namespace cuaudit::alloc
