// SPDX-License-Identifier: MIT
// requests.h: a request that the fast path does not serve, from its check to its block.
//
//   Threads   any thread.
//   Errors    as Allocator::Allocate; `*out` is set with SUCCESS alone.
//   Faults    StreamIsCapturing, StreamGetCaptureInfo; as Search, and as Ladder.
#pragma once

#include "allocator/requests/ladder.h"

namespace cuaudit::alloc {

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
