// SPDX-License-Identifier: MIT
// segment_source.h: memory for an arena from the driver, or from a pool's own source, and back: plain segments (segments.cc) and pages in
// a range of addresses (expandable.cc).
//
//   Owns      the memory behind all segments; it is given back here and nowhere else.
//   Threads   Grow: with Arena::growing held. Release: with Device::releasing held, and the block in nobody's set. No arena's lock is held
//             across a driver call.
//   Units     bytes.
//   Errors    CUresult as the driver gave it. What could not be given back is ours still, unless it is in doubt (docs/ALLOCATOR.md,
//             "Releases that fail").
//   Faults    Grow: MemAlloc, or MemAddressReserve, MemCreate, MemMap, MemSetAccess, unwound by MemUnmap and MemRelease; where pages move, EventQuery.
//             Release: what waits
//             for uses, PointerGetAttribute, MemFree, MemUnmap, MemRelease. CloseAll: MemAddressFree too. ThreadExchangeStreamCaptureMode.
#pragma once

#include "allocator/requests/page_mover.h"
#include "allocator/requests/synchronizer.h"

namespace cuaudit::alloc {

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

}  // namespace cuaudit::alloc
