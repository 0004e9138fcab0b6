// SPDX-License-Identifier: MIT
// cached_memory.h: what is free goes back to the driver: because a user says so, or to make room.
//
//   Threads   any thread. Device::releasing is held while cached memory is given back; EmptyDevice, ReleaseOversize and CollectGarbage
//             are called with it.
//   Errors    CUresult as the driver gave it, the first; OUT_OF_MEMORY when host memory ran out.
//   Faults    as Synchronizer and SegmentSource::Release.
#pragma once

#include "allocator/requests/segment_source.h"
#include "allocator/tables/arena_table.h"
#include "allocator/tables/pool_table.h"
#include "allocator/tables/thread_caches.h"

namespace cuaudit::alloc {

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
