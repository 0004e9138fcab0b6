// SPDX-License-Identifier: MIT
// search.h: a free block for a request, among what the arenas have.
//
//   Threads   any thread; one arena's lock at a time, and none across a driver call: a block that is waited for is in nobody's set.
//   Streams   the request's stream is made to wait, recorded on and asked about its capture when `can_touch` says so; others are polled.
//   Errors    nullptr: nothing was found, and `*error` says whether the driver refused a question or a wait.
//   Faults    EventQuery, StreamIsCapturing, StreamGetCaptureInfo, GraphNodeGetDependencies, StreamWaitEvent, EventRecord.
//   Source    the order: PyTorch's malloc and alloc_block; what waits, and what comes from others: ours.
#pragma once

#include "allocator/tables/pool_table.h"
#include "allocator/tables/stream_table.h"
#include "allocator/tables/thread_cache.h"

namespace cuaudit::alloc {

class Search {
 public:
  Search(Environment& environment, StreamTable& streams, ArenaTable& arenas, ThreadCaches& caches) noexcept
      : env_(environment), streams_(streams), arenas_(arenas), caches_(caches) {}
  // Free for certain on the arena's stream, then in a capture, then of other arenas, then to be waited for on the device.
  Block* Take(Arena* arena, const Request& request, CUresult* error) noexcept;
  // Free for certain alone. `thorough`: what threads have cached comes first, and all uses are looked at.
  Block* TakeReady(Arena* arena, const Request& request, bool thorough, CUresult* error) noexcept;
  // Looks once at each stream that blocks wait for, or that whoever gets them would have to wait for.
  CUresult PollWaiting(Arena* arena, std::size_t limit) noexcept;

 private:
  CUresult StampForOthers(Arena* arena, const Request& request) noexcept;
  Block* TakeCaptured(Arena* arena, const Request& request, CUresult* error) noexcept;
  Block* TakeOther(Arena* arena, const Request& request, CUresult* error) noexcept;
  Block* TakePending(Arena* arena, const Request& request, CUresult* error) noexcept;
  CUresult MakeWait(const Request& request, const Block* block, const Use& use, bool* granted) noexcept;

  Environment& env_;
  StreamTable& streams_;
  ArenaTable& arenas_;
  ThreadCaches& caches_;
};

}  // namespace cuaudit::alloc
