// SPDX-License-Identifier: MIT
// requests.h: a request that the fast path does not serve, and the ladder that it climbs when nothing is free.
#pragma once

#include "allocator/requests/search.h"
#include "allocator/requests/segment_source.h"

namespace cuaudit::alloc {

// New memory for a request, and what is done when there is none, the cheapest first.
//
//   Owns      the list of who is told of failures, and who is asked to free memory; their functions are called with no lock held.
//   Threads   any thread; Arena::growing is held while an arena grows, Device::releasing while memory is given back for it.
//   Errors    CUresult as the driver gave it, or OUT_OF_MEMORY with an account (Allocator::LastOutOfMemory).
//   Faults    as SegmentSource and CachedMemory; MemGetInfo.
//   Source    the order of the steps: PyTorch's malloc.
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

// A request that the fast path does not serve, from its check to its block.
//
//   Threads   any thread.
//   Errors    as Allocator::Allocate; `*out` is set with SUCCESS alone.
//   Faults    StreamIsCapturing, StreamGetCaptureInfo; as Search, and as Ladder.
class Requests {
 public:
  Requests(Environment& environment, StreamTable& streams, PoolTable& pools, ArenaTable& arenas, ThreadCaches& caches, Search& search,
           Ladder& ladder) noexcept
      : env_(environment), streams_(streams), pools_(pools), arenas_(arenas), caches_(caches), search_(search), ladder_(ladder) {}
  CUresult Serve(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;

 private:
  CUresult LookAtCapture(const Pool* pool, Request* request) noexcept;
  CUresult EnterCapture(const Pool* pool, CUstream live, Request* request) noexcept;

  Environment& env_;
  StreamTable& streams_;
  PoolTable& pools_;
  ArenaTable& arenas_;
  ThreadCaches& caches_;
  Search& search_;
  Ladder& ladder_;
};

}  // namespace cuaudit::alloc
