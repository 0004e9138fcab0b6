// SPDX-License-Identifier: MIT
// counters.h: what one thread allocated and freed on one device, and the sum over all threads with its peak.
//
//   Threads   Counters: Raise and Lower by their thread alone, reading by anybody; the Shared forms by anybody. Totals: under its lock.
//   Units     blocks and bytes.
//   Faults    makes no driver calls.
//
// A peak of the sum is taken when a thread's part is folded in: the others' parts as of their last time, plus the highest of this one's
// since its own. With one thread that is exact. One thread may allocate what another frees, so each folds its part in before that is far
// from what the sum knows of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/lock.h"
#include "allocator/statistics.h"

namespace cuaudit::alloc {

inline constexpr std::size_t kMaxDevices = 64;

inline constexpr std::int64_t kMostOff = std::int64_t{64} << 20U;  // bytes; a thread cache may add to it

enum Measure : std::size_t { kCount, kBytes, kRequested, kMeasures };

// What one thread added and took away, small and large; and the most that there was at once since it was last folded in, of all and of
// each.
struct Line {
  std::atomic<std::int64_t> added[2] = {};
  std::atomic<std::int64_t> taken[2] = {};
  std::atomic<std::int64_t> high[kPoolKinds] = {};
  std::int64_t folded[kPoolKinds] = {};  // under the totals' lock

  std::int64_t Net(std::size_t i) const noexcept {
    return added[i].load(std::memory_order_relaxed) - taken[i].load(std::memory_order_acquire);
  }
  [[gnu::always_inline]] void Raise(std::size_t i, std::int64_t by) noexcept {
    const std::int64_t sum = added[i].load(std::memory_order_relaxed) + by;
    added[i].store(sum, std::memory_order_relaxed);
    const std::int64_t net = sum - taken[i].load(std::memory_order_relaxed);  // reading `sum` back would wait for the store
    const std::int64_t all = net + Net(1 - i);
    if (net > high[i + 1].load(std::memory_order_relaxed)) high[i + 1].store(net, std::memory_order_relaxed);
    if (all > high[0].load(std::memory_order_relaxed)) high[0].store(all, std::memory_order_relaxed);
  }
  // Where what there is at most is known already.
  [[gnu::always_inline]] void Add(std::size_t i, std::int64_t by) noexcept {
    added[i].store(added[i].load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  [[gnu::always_inline]] void Lower(std::size_t i, std::int64_t by) noexcept {
    taken[i].store(taken[i].load(std::memory_order_relaxed) + by, std::memory_order_release);
  }
};

// A few stores for each call, since the next locked instruction waits for them: everything else is derived when somebody asks.
struct alignas(64) Counters {
  Line line[kMeasures];
  std::atomic<std::int64_t> folded_bytes = 0;  // its part of the sum, which Fold sets
  // The block that was freed last, if nothing was allocated and Fold not called since.
  std::atomic<const void*> just_freed{nullptr};

  // True when its thread should fold it in. Asked where a call is slow anyway.
  bool IsFarOff() const noexcept {
    const std::int64_t off = line[kBytes].Net(0) + line[kBytes].Net(1) - folded_bytes.load(std::memory_order_relaxed);
    return off > kMostOff || off < -kMostOff;
  }

  [[gnu::always_inline]] void Allocated(bool large, std::size_t bytes, std::size_t requested) noexcept {
    just_freed.store(nullptr, std::memory_order_relaxed);
    // Each kind's own code, so that nothing is computed to find its places.
    large ? Raise<1>(bytes, requested) : Raise<0>(bytes, requested);
  }
  // Allocates a block from the thread's cache. `before`: bytes requested of it last time. When it was freed just now and no more is asked
  // for, no peak can rise.
  [[gnu::always_inline]] void AllocatedKept(const void* block, bool large, std::size_t bytes, std::size_t requested,
                                            std::size_t before) noexcept {
    if (just_freed.load(std::memory_order_relaxed) != block || requested > before) [[unlikely]]
      return AllocatedOther(large, bytes, requested);
    large ? Add<1>(bytes, requested) : Add<0>(bytes, requested);
  }
  // Sets `just_freed` before it lowers the counters: a reader clears it after reading them.
  void Freed(const void* block, bool large, std::size_t bytes, std::size_t requested) noexcept {
    just_freed.store(block, std::memory_order_relaxed);
    large ? Lower<1>(bytes, requested) : Lower<0>(bytes, requested);
  }

 private:
  [[gnu::noinline]] void AllocatedOther(bool large, std::size_t bytes, std::size_t requested) noexcept {
    Allocated(large, bytes, requested);
  }
  template <std::size_t i>
  void Raise(std::size_t bytes, std::size_t requested) noexcept {
    line[kCount].Raise(i, 1);
    line[kBytes].Raise(i, static_cast<std::int64_t>(bytes));
    line[kRequested].Raise(i, static_cast<std::int64_t>(requested));
  }
  template <std::size_t i>
  void Add(std::size_t bytes, std::size_t requested) noexcept {
    line[kCount].Add(i, 1);
    line[kBytes].Add(i, static_cast<std::int64_t>(bytes));
    line[kRequested].Add(i, static_cast<std::int64_t>(requested));
  }
  template <std::size_t i>
  void Lower(std::size_t bytes, std::size_t requested) noexcept {
    line[kCount].Lower(i, 1);
    line[kBytes].Lower(i, static_cast<std::int64_t>(bytes));
    line[kRequested].Lower(i, static_cast<std::int64_t>(requested));
  }
};

// Of one device.
struct Totals {
  Lock lock;
  std::int64_t current[kMeasures][kPoolKinds] = {};
  std::int64_t peak[kMeasures][kPoolKinds] = {};
  std::int64_t active_peak[2][kPoolKinds] = {};  // [blocks, bytes]: allocated and pending
  std::int64_t base_added[kMeasures][kPoolKinds] = {};
  std::int64_t base_taken[kMeasures][kPoolKinds] = {};
  Stat segment[kPoolKinds], reserved[kPoolKinds], pending[2][kPoolKinds];
  Stat oversize_allocations, oversize_segments;
  Stat split[2][kPoolKinds];  // [blocks, bytes]; `current` and `peak` as of the moments when somebody looked

  void Fold(Counters* counters) noexcept;  // `lock` is held
};

inline void AddTo(Stat* stat, std::int64_t by) noexcept {
  stat->current += by;
  if (by > 0) stat->allocated += by;
  if (by < 0) stat->freed -= by;
  if (stat->current > stat->peak) stat->peak = stat->current;
}
// In `All` and the kind's own.
inline void AddTo(Stat (&stats)[kPoolKinds], bool large, std::int64_t by) noexcept {
  AddTo(&stats[0], by);
  AddTo(&stats[large ? 2 : 1], by);
}

}  // namespace cuaudit::alloc
