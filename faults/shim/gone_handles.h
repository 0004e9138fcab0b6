// SPDX-License-Identifier: MIT
// gone_handles.h: objects whose release was carried out and told to have failed (`after`). Whoever believes what it was told goes on using
// them, and a genuine driver follows such a handle into freed memory: calls that name one are answered here instead.
//
//   Owns      a small table; what it cannot hold is passed on as before.
//   Threads   safe; handles are added and removed by calls of any thread.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    ours. A simulated driver knows its stale handles itself, so a gate in front of one has no need of this.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuaudit::faults {

class GoneHandles {
 public:
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

  void Add(std::uint64_t handle) noexcept {
    if (handle == 0 || Has(handle)) return;
    for (std::atomic<std::uint64_t>& place : handle_) {
      std::uint64_t empty = 0;
      if (!place.compare_exchange_strong(empty, handle, std::memory_order_relaxed)) continue;
      count_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  // The driver gave the same value to another object.
  void Remove(std::uint64_t handle) noexcept {
    if (handle == 0) return;
    for (std::atomic<std::uint64_t>& place : handle_) {
      std::uint64_t held = handle;
      if (place.compare_exchange_strong(held, 0, std::memory_order_relaxed)) count_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  bool Has(std::uint64_t handle) const noexcept {
    for (const std::atomic<std::uint64_t>& place : handle_) {
      if (handle != 0 && place.load(std::memory_order_relaxed) == handle) return true;
    }
    return false;
  }

 private:
  std::atomic<std::uint64_t> handle_[64] = {};
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace cuaudit::faults
