// SPDX-License-Identifier: MIT
// ladder.h: new memory for a request, and what is done when there is none, the cheapest first.
//
//   Owns      the list of who is told of failures, and who is asked to free memory; their functions are called with no lock held.
//   Threads   any thread; Arena::growing is held while an arena grows, Device::releasing while memory is given back for it.
//   Errors    CUresult as the driver gave it, or OUT_OF_MEMORY with an account (Allocator::LastOutOfMemory).
//   Faults    as SegmentSource and CachedMemory; MemGetInfo.
//   Source    the order of the steps: PyTorch's malloc.
#pragma once

#include "allocator/requests/cached_memory.h"
#include "allocator/requests/search.h"

namespace cuaudit::alloc {

class Ladder {
 public:
  Ladder(Environment& environment, PoolTable& pools, ArenaTable& arenas, ThreadCaches& caches, Search& search, Synchronizer& synchronizer,
         CachedMemory& cached, SegmentSource& source) noexcept
      : env_(environment),
        pools_(pools),
        arenas_(arenas),
        caches_(caches),
        search_(search),
        synchronizer_(synchronizer),
        cached_(cached),
        source_(source) {}
  CUresult Grow(Arena* arena, Request* request, Block** out) noexcept;
  CUresult AddOomObserver(const OomObserver& observer) noexcept;
  CUresult AddFreeMemoryCallback(const FreeMemoryCallback& callback) noexcept;

 private:
  // Entries are written before they are counted, and stay.
  template <typename Entry>
  struct List {
    static constexpr std::size_t kMost = 8;
    bool Add(const Entry& entry) noexcept;  // false: full
    const Entry* begin() const noexcept { return entries; }
    const Entry* end() const noexcept { return entries + count.load(std::memory_order_acquire); }
    Lock lock;
    Entry entries[kMost] = {};
    std::atomic<std::size_t> count{0};
  };
  Block* BorrowFromPools(Arena* arena, const Request& request, CUresult* error) noexcept;
  CUresult OutOfMemoryOf(Arena* arena, const Request& request, std::size_t segment, CUresult driver_result) noexcept;

  Environment& env_;
  PoolTable& pools_;
  ArenaTable& arenas_;
  ThreadCaches& caches_;
  Search& search_;
  Synchronizer& synchronizer_;
  CachedMemory& cached_;
  SegmentSource& source_;
  List<OomObserver> oom_observers_;
  List<FreeMemoryCallback> free_callbacks_;
};

}  // namespace cuaudit::alloc
