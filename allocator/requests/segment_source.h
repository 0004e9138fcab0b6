// SPDX-License-Identifier: MIT
// segment_source.h: memory from the driver, from free pages of other arenas (page_mover.cc), and back (cached_memory.cc).
#pragma once

#include <chrono>

#include "allocator/requests/search.h"
#include "allocator/requests/synchronizer.h"
#include "allocator/tables/pool_table.h"
#include "allocator/tables/thread_cache.h"

namespace cuaudit::alloc {

// Whole pages of free blocks, linked by Block::link, as one row of physical handles.
class PageLots {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t pages() const noexcept { return pages_; }
  void Add(Block* block) noexcept {
    block->link = first_;
    first_ = block;
    pages_ += block->size / block->segment->page;
  }
  Block* TakeBlock() noexcept {  // nullptr: there are no more
    Block* const block = first_;
    if (block == nullptr) return nullptr;
    first_ = block->link;
    block->link = nullptr;
    pages_ -= block->size / block->segment->page;
    return block;
  }

  class Cursor {
   public:
    explicit Cursor(const PageLots& lots) noexcept : block_(lots.first_) {}
    bool at_end() const noexcept { return block_ == nullptr; }
    CUmemGenericAllocationHandle handle() const noexcept {
      const Segment* const segment = block_->segment;
      return segment->handles[(block_->address.load(std::memory_order_relaxed) - segment->address) / segment->page + page_];
    }
    void Advance() noexcept {
      if (++page_ < block_->size / block_->segment->page) return;
      page_ = 0;
      block_ = block_->link;
    }

   private:
    const Block* block_;
    std::size_t page_ = 0;
  };

 private:
  Block* first_ = nullptr;
  std::size_t pages_ = 0;
};

// Physical pages of free memory that serve another arena, or other addresses of the same one, in place of new ones.
//
//   Owns      nothing. Blocks that it has taken out of their arenas are in nobody's set until Settle or Leave.
//   Threads   Device::releasing is held from Gather to Settle or Leave. An arena's lock is taken by itself, never across a driver call.
//   Streams   a page moves when all work on it is known to be over, and nothing is waited for. With trust_stream_handles a stream that
//             freed pages is recorded on, until it is retired; others are never touched.
//   Units     bytes; pages of the range that they lie in.
//   Errors    CUresult as the driver gave it.
//   Faults    Gather: EventQuery, StreamIsCapturing, EventCreate, EventRecord, and what CurrentContext calls. Leave: MemUnmap.
class PageMover {
 public:
  PageMover(Environment& environment, ArenaTable& arenas, ThreadCaches& caches, Search& search) noexcept
      : env_(environment), arenas_(arenas), caches_(caches), search_(search) {}

  // Whether pages may move to `taker`, which would otherwise get `bytes` of new ones: by its kind, by how much is reserved already, and by
  // the time that moves have taken.
  bool IsDue(const Arena* taker, std::size_t requested, std::size_t bytes) noexcept;
  // At most `wanted` free pages as large as those of `range`, all work on which is over; out of `taker` first.
  CUresult Gather(Arena* taker, const Segment* range, std::size_t wanted, PageLots* out) noexcept;
  void Settle(PageLots* lots) noexcept;  // they stay where they are
  // Their physical memory has other addresses by now: the old ones are unmapped, and have no handles any more. The first error; every page
  // has left all the same.
  CUresult Leave(PageLots* lots) noexcept;

  // Time that is taken off what moves may take.
  class Timed {
   public:
    explicit Timed(Device* device) noexcept : device_(device) {}
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;
    ~Timed() { device_->moving_credit -= std::chrono::steady_clock::now() - began_; }

   private:
    Device* const device_;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  };

 private:
  CUresult TakeFrom(Arena* arena, const Segment* range, std::size_t wanted, PageLots* out) noexcept;
  CUresult Poll(StreamRecord* stream) noexcept;
  CUresult Record(StreamRecord* stream) noexcept;
  static std::uint64_t TakeOver(Arena* arena, const Segment* range, std::size_t wanted, PageLots* out) noexcept;
  static void TakeOfKind(Arena* arena, bool large, std::size_t page, std::size_t wanted, PageLots* out, std::uint64_t* owed) noexcept;

  Environment& env_;
  ArenaTable& arenas_;
  ThreadCaches& caches_;
  Search& search_;
};

// Memory for an arena from the driver, or from a pool's own source, and back: plain segments (segments.cc) and pages in
// a range of addresses (expandable.cc).
//
//   Owns      the memory behind all segments; it is given back here and nowhere else.
//   Threads   Grow: with Arena::growing held. Release: with Device::releasing held, and the block in nobody's set. No arena's lock is held
//             across a driver call.
//   Units     bytes.
//   Errors    CUresult as the driver gave it. What could not be given back is ours still, unless it is in doubt (docs/ALLOCATOR.md,
//             "Releases that fail").
//   Faults    Grow, plain: MemAlloc. Grow, pages: MemAddressReserve, MemCreate, MemMap, MemSetAccess, which MemUnmap and MemRelease undo;
//             where pages move, those of PageMover. Release: those of Synchronizer, PointerGetAttribute, MemFree, MemUnmap, MemRelease.
//             CloseAll: also MemAddressFree. All of them: ThreadExchangeStreamCaptureMode.
class SegmentSource {
 public:
  SegmentSource(Environment& environment, Synchronizer& synchronizer, PageMover& mover) noexcept
      : env_(environment), synchronizer_(synchronizer), mover_(mover) {}
  std::size_t SegmentSize(std::size_t size) const noexcept;  // that a request of that size grows a plain arena by
  CUresult Grow(Arena* arena, Request* request, Block** out) noexcept;
  // A free block in nobody's set: the whole of a segment, or what it has of whole pages. The rest is free afterwards.
  CUresult Release(Block* block) noexcept { return block->segment->expandable ? UnmapPages(block) : ReleaseSegment(block->segment); }
  // Of one whole block in nobody's set; or, when the allocator closes, of whatever is in it.
  CUresult ReleaseSegment(Segment* segment) noexcept;
  CUresult CloseAll(Arena* arena) noexcept;  // live blocks too; what is left is for another try

 private:
  CUresult AddSegment(Arena* arena, Request* request, Block** out) noexcept;
  void ForgetSegment(Segment* segment) noexcept;
  CUresult Extend(Arena* arena, Request* request, Block** out) noexcept;
  CUresult MakeRange(Arena* arena, bool large) noexcept;
  CUresult FillPages(Arena* arena, Request* request, Block* room, CUresult* error) noexcept;
  CUresult MapPages(Segment* segment, Block* block, const PageLots& moved) noexcept;
  bool DropPage(Segment* segment, std::size_t page, CUresult* first) noexcept;
  CUresult UnmapSpan(Segment* segment, std::size_t first, std::size_t count, std::size_t* done) noexcept;
  CUresult UnmapPages(Block* block) noexcept;
  CUresult DropRange(Segment* segment) noexcept;

  Environment& env_;
  Synchronizer& synchronizer_;
  PageMover& mover_;
};

// What is free goes back to the driver: because a user says so, or to make room.
//
//   Threads   any thread. Device::releasing is held while cached memory is given back; EmptyDevice, ReleaseOversize and CollectGarbage
//             are called with it.
//   Errors    CUresult as the driver gave it, the first; OUT_OF_MEMORY when host memory ran out.
//   Faults    as Synchronizer and SegmentSource::Release.
class CachedMemory {
 public:
  CachedMemory(Environment& environment, Devices& devices, PoolTable& pools, ArenaTable& arenas, ThreadCaches& caches,
               Synchronizer& synchronizer, SegmentSource& source) noexcept
      : env_(environment),
        devices_(devices),
        pools_(pools),
        arenas_(arenas),
        caches_(caches),
        synchronizer_(synchronizer),
        source_(source) {}
  CUresult EmptyCache(const PoolId* only) noexcept;
  CUresult Trim(int device, std::size_t reserved_bytes) noexcept;
  // Memory of a private pool stays: a graph may have its addresses. Its last user's leave frees it.
  CUresult EmptyDevice(Device* device, std::size_t until_reserved) noexcept;
  // With max_split_size: cached oversize blocks of this stream, one that is large enough or the largest until they are. Not of a private
  // pool, as in EmptyDevice.
  bool ReleaseOversize(Arena* arena, const Request& request) noexcept;
  // Large blocks of the device, whichever stream's, that have been passed over for longer than the average, without waiting for anything.
  // Not of a private pool.
  void CollectGarbage(Device* device, const Request& request) noexcept;

 private:
  CUresult EmptyArena(Arena* arena, std::size_t until_reserved, const PoolId* only) noexcept;
  Environment& env_;
  Devices& devices_;
  PoolTable& pools_;
  ArenaTable& arenas_;
  ThreadCaches& caches_;
  Synchronizer& synchronizer_;
  SegmentSource& source_;
};

}  // namespace cuaudit::alloc
