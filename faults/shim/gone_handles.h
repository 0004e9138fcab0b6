// SPDX-License-Identifier: MIT
// gone_handles.h: objects whose release was carried out and told to have failed (`after`). Whoever believes what it was told goes on using
// them, and a genuine driver follows such a handle into freed memory: calls that name one are answered here instead.
//
//   Owns      a small table; what it cannot hold is counted and passed on as before.
//   Threads   safe; handles are added and removed by calls of any thread.
//   Faults    makes no driver calls.
//   Source    ours. A simulated driver knows its stale handles itself: a gate in front of one needs this only when it crashes as a
//           genuine one does.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "gone_handles.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/driver/kinds.h"
#include "faults/shim/call_record.h"

namespace cuaudit::faults {

class GoneHandles {
 public:
  static constexpr std::size_t kMost = 64;

  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
  // How many objects found no place.
  std::uint32_t beyond() const noexcept { return beyond_.load(std::memory_order_relaxed); }

  void Add(driver::Family family, std::uint64_t handle) noexcept {
    if (handle == 0 || Has(family, handle)) return;
    for (std::atomic<std::uint64_t>& place : key_) {
      std::uint64_t empty = 0;
      if (!place.compare_exchange_strong(empty, Key(family, handle), std::memory_order_relaxed)) continue;
      count_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    beyond_.fetch_add(1, std::memory_order_relaxed);
  }
  // The driver gave the same value to another object of the family.
  void Remove(driver::Family family, std::uint64_t handle) noexcept {
    if (handle == 0) return;
    for (std::atomic<std::uint64_t>& place : key_) {
      std::uint64_t held = Key(family, handle);
      if (place.compare_exchange_strong(held, 0, std::memory_order_relaxed)) count_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  bool Has(driver::Family family, std::uint64_t handle) const noexcept {
    for (const std::atomic<std::uint64_t>& place : key_) {
      if (handle != 0 && place.load(std::memory_order_relaxed) == Key(family, handle)) return true;
    }
    return false;
  }

  // A call that names one is answered by the gate; a passage that names none stays as it is.
  void Answer(Passage* passage) const noexcept;
  // Of a call that succeeded: what a release took and the caller is told is there is gone; what the driver hands out is there.
  void After(const Passage& passage) noexcept;

 private:
  // Handles are user addresses or small numbers: their topmost byte is free for the family.
  static std::uint64_t Key(driver::Family family, std::uint64_t handle) noexcept {
    return handle ^ static_cast<std::uint64_t>(family) << 56U;
  }

  std::atomic<std::uint64_t> key_[kMost] = {};
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> beyond_{0};
};

}  // namespace cuaudit::faults
