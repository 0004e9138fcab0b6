// SPDX-License-Identifier: MIT
// counters.h: what one thread allocated and freed on one device, and the sum over all threads with its peak.
//
//   Owns      nothing.
//   Threads   Counters: Raise and Lower by their thread alone, reading by anybody; the Shared forms by anybody. Totals: under its lock.
//   Units     blocks and bytes.
//   Faults    makes no driver calls.
//
// A peak of the sum is taken when a thread's part is folded in: the others' parts then, plus the highest of this one's since last time. With
// one thread that is exact.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/lock.h"
#include "allocator/statistics.h"

namespace cuaudit::alloc {

enum Measure : std::size_t { kCount, kBytes, kRequested, kMeasures };

struct Line {
  std::atomic<std::int64_t> added{0};
  std::atomic<std::int64_t> taken{0};
  std::atomic<std::int64_t> high{0};
  std::int64_t folded = 0;  // under the totals' lock

  void Raise(std::int64_t by) noexcept {
    const std::int64_t now = added.load(std::memory_order_relaxed) + by;
    added.store(now, std::memory_order_relaxed);
    const std::int64_t net = now - taken.load(std::memory_order_relaxed);
    if (net > high.load(std::memory_order_relaxed)) high.store(net, std::memory_order_relaxed);
  }
  void Lower(std::int64_t by) noexcept { taken.store(taken.load(std::memory_order_relaxed) + by, std::memory_order_relaxed); }
};

struct alignas(64) Counters {
  Line line[kMeasures][kPoolKinds];
  std::atomic<std::uint64_t> served_thread_cache{0};

  void Allocated(bool large, std::size_t bytes, std::size_t requested) noexcept {
    const std::size_t kind = large ? 2 : 1;
    for (const std::size_t k : {std::size_t{0}, kind}) {
      line[kCount][k].Raise(1);
      line[kBytes][k].Raise(static_cast<std::int64_t>(bytes));
      line[kRequested][k].Raise(static_cast<std::int64_t>(requested));
    }
  }
  void Freed(bool large, std::size_t bytes, std::size_t requested) noexcept {
    const std::size_t kind = large ? 2 : 1;
    for (const std::size_t k : {std::size_t{0}, kind}) {
      line[kCount][k].Lower(1);
      line[kBytes][k].Lower(static_cast<std::int64_t>(bytes));
      line[kRequested][k].Lower(static_cast<std::int64_t>(requested));
    }
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
