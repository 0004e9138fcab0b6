// SPDX-License-Identifier: MIT
// lock.h: a mutex for sections of some ten nanoseconds: one locked instruction, inline. And a barrier in all threads of the process.
//
//   Owns      nothing beyond itself.
//   Threads   as std::mutex. Whoever finds it held spins for a moment, then sleeps ever longer, up to a millisecond: so leaving costs a
//             plain store, and a holder of any priority gets the processor. Which may be taken while which are held, and which are held across
//             driver calls: lock_order.def.
//   Faults    makes no driver calls.
#pragma once

#include <atomic>
#include <cstdint>
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

// A row of lock_order.def.
enum class LockRank : std::uint8_t {
#define CUAUDIT_ALLOC_LOCK(rank, which, across_calls) rank,
#include "allocator/lock_order.def"
#undef CUAUDIT_ALLOC_LOCK
};

class Lock {
 public:
#ifdef NDEBUG
  explicit constexpr Lock(LockRank = LockRank::Last) noexcept {}
#else
  explicit constexpr Lock(LockRank rank = LockRank::Last) noexcept : rank_(rank) {}
#endif
  bool try_lock() noexcept {
    const bool done = !is_held_.exchange(true, std::memory_order_acquire);  // needs no load first, as comparing would
#ifndef NDEBUG
    if (done) NoteTaken(rank_);
#endif
    return done;
  }
  void lock() noexcept {
#ifndef NDEBUG
    CheckOrder(rank_);
#endif
    if (!try_lock()) [[unlikely]]
      Wait();
  }
  void unlock() noexcept {
#ifndef NDEBUG
    NoteLeft(rank_);
#endif
    is_held_.store(false, std::memory_order_release);
  }

 private:
  void Wait() noexcept;

  std::atomic<bool> is_held_{false};
#ifndef NDEBUG
  static void CheckOrder(LockRank rank) noexcept;  // ends the process, with a line that names both locks
  static void NoteTaken(LockRank rank) noexcept;
  static void NoteLeft(LockRank rank) noexcept;
  LockRank rank_;
#endif
};

using Held = std::lock_guard<Lock>;

// A barrier in every running thread of this process at once (membarrier), so that a thread that is rarely looked at needs none of its own.
bool MayRunBarrier() noexcept;  // once, before the other; false: the kernel has no such call, or refuses it
bool RunBarrier() noexcept;     // false: refused, and nothing was done

}  // namespace cuaudit::alloc
