// SPDX-License-Identifier: MIT
// report.h: figures and pictures of an allocator: statistics, snapshots, which block an address lies in.
//
//   Threads   any thread; arenas are locked one after the other, so figures of several may be of different moments.
//   Errors    TakeSnapshot: NOT_INITIALIZED, ILLEGAL_STATE, OUT_OF_MEMORY.
//   Faults    makes no driver calls.
#pragma once

#include "allocator/snapshot.h"
#include "allocator/statistics.h"
#include "allocator/tables/arena_table.h"
#include "allocator/tables/stream_table.h"
#include "allocator/tables/thread_caches.h"

namespace cuaudit::alloc {

class Report {
 public:
  Report(Environment& environment, const Devices& devices, StreamTable& streams, ArenaTable& arenas, ThreadCaches& caches) noexcept
      : env_(environment), devices_(devices), streams_(streams), arenas_(arenas), caches_(caches) {}
  void GetStatistics(int device, Statistics* out) noexcept;
  void ResetPeaks(int device) noexcept;
  void ResetAccumulated(int device) noexcept;
  CUresult TakeSnapshot(Snapshot* out) noexcept;
  bool FindBlock(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) noexcept;

 private:
  Environment& env_;
  const Devices& devices_;
  StreamTable& streams_;
  ArenaTable& arenas_;
  ThreadCaches& caches_;
};

}  // namespace cuaudit::alloc
