// SPDX-License-Identifier: MIT
// page_mover.h: physical pages of free memory that serve another arena, or other addresses of the same one, in place of new ones.
//
//   Owns      nothing. Blocks that it has taken out of their arenas are in nobody's set until Settle or Leave.
//   Threads   Device::releasing is held from Gather to Settle or Leave. An arena's lock is taken by itself, never across a driver call.
//   Streams   a page moves when all work on it is known to be over, and nothing is waited for. With trust_stream_handles a stream that
//             freed pages is recorded on, until it is retired; others are never touched.
//   Units     bytes; pages of the range that they lie in.
//   Errors    CUresult as the driver gave it.
//   Faults    Gather: EventQuery, StreamIsCapturing, EventCreate, EventRecord, and what CurrentContext calls. Leave: MemUnmap.
#pragma once

#include <chrono>

#include "allocator/requests/search.h"
#include "allocator/tables/arena_table.h"
#include "allocator/tables/thread_caches.h"

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

}  // namespace cuaudit::alloc
