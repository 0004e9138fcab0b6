// SPDX-License-Identifier: MIT
// mutex_table.h: the mutexes that were initialised and not yet destroyed, so that freeing the memory under one is noticed.
//
// A fixed, lock-free table for 4,096 mutexes. The thread that initialises or destroys a mutex adds or removes it. std::mutex never calls
// pthread_mutex_init, so it is not seen.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuaudit::faults {

class MutexTable {
 public:
  bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  static bool Locked(std::uint64_t mutex) noexcept {
    return __atomic_load_n(&reinterpret_cast<const pthread_mutex_t*>(mutex)->__data.__lock, __ATOMIC_RELAXED) != 0;
  }

  // Returns false when the table is full; the mutex is then not followed.
  [[nodiscard]] bool Add(std::uint64_t mutex) noexcept {
    Remove(mutex);
    for (std::size_t i = 0; i < kCapacity; ++i) {
      std::uint64_t free = 0;
      if (slots_[i].load(std::memory_order_relaxed) != 0 || !slots_[i].compare_exchange_strong(free, mutex, std::memory_order_relaxed))
        continue;
      std::size_t used = used_.load(std::memory_order_relaxed);
      while (used <= i && !used_.compare_exchange_weak(used, i + 1, std::memory_order_relaxed)) {
      }
      count_.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    return false;
  }

  void Clear() noexcept {
    for (std::atomic<std::uint64_t>& slot : slots_) {
      if (slot.exchange(0, std::memory_order_relaxed) != 0) count_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  void Remove(std::uint64_t mutex) noexcept {
    RemoveRange(mutex, 1, [](std::uint64_t, bool) {});
  }

  // Removes every mutex inside [start, start + bytes) and calls `visit` for each.
  template <typename Visit>
  void RemoveRange(std::uint64_t start, std::size_t bytes, const Visit& visit) noexcept {
    if (empty()) return;
    const std::size_t used = used_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < used; ++i) {
      std::atomic<std::uint64_t>& slot = slots_[i];
      std::uint64_t mutex = slot.load(std::memory_order_relaxed);
      if (mutex < start || mutex >= start + bytes || mutex == 0) continue;
      if (!slot.compare_exchange_strong(mutex, 0, std::memory_order_relaxed)) continue;
      count_.fetch_sub(1, std::memory_order_relaxed);
      visit(mutex, Locked(mutex));
    }
  }

 private:
  static constexpr std::size_t kCapacity = 4096;

  std::atomic<std::uint64_t> slots_[kCapacity] = {};
  std::atomic<std::size_t> used_{0};  // slots from here on were never taken, so free() only looks at those below
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace cuaudit::faults
