// SPDX-License-Identifier: MIT
// core.h: the parts behind allocator.h, and the path without locks.
//
//   Owns      the parts. Each is handed those that it needs when it is made, and knows no other: a part sees only parts above it.
//   Threads   each part says so; all locks are in lock_order.def. An allocation from the cache and a plain Free take none that is held
//             across driver calls, and mostly none at all.
//   Errors, Faults   as in allocator.h.
#pragma once

#include "allocator/allocator.h"
#include "allocator/core/checkpoints.h"
#include "allocator/core/report.h"
#include "allocator/core/use_recorder.h"
#include "allocator/requests/requests.h"
#include "allocator/tables/arena_table.h"
#include "allocator/tables/identities.h"
#include "allocator/tables/pool_table.h"
#include "allocator/tables/stream_table.h"
#include "allocator/tables/thread_caches.h"

namespace cuaudit::alloc {

class Core {
 public:
  Core(driver::DriverRef driver, const Options& options) noexcept : environment(driver, options) {}
  CUresult Open(const DeviceConfig* devices, int count) noexcept;
  CUresult Close(std::size_t* live_blocks) noexcept;
  CUresult Allocate(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept;
  CUresult Allocate(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;
  CUresult Free(CUdeviceptr address) noexcept;
  // Without asking which stream the handle is. False: it has to be asked.
  bool AllocateRemembered(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept;
  void Remember(int device, CUstream stream, StreamRecord* record) noexcept;
  CUresult RecordUseByHandle(CUdeviceptr address, int device, CUstream stream) noexcept;

  Environment environment;
  Devices devices{environment};
  StreamTable streams{environment, devices};
  PoolTable pools{environment, devices, streams};
  Identities identities{environment, devices, streams, pools};
  ArenaTable arenas{environment};
  ThreadCaches caches{environment};
  Keepers keepers{environment, streams};
  Synchronizer synchronizer{environment, streams, keepers};
  Search search{environment, streams, arenas, caches};
  PageMover mover{environment, arenas, caches, search};
  SegmentSource source{environment, synchronizer, mover};
  CachedMemory cached{environment, devices, pools, arenas, caches, synchronizer, source};
  Ladder ladder{environment, pools, arenas, caches, search, synchronizer, cached, source};
  Requests requests{environment, streams, pools, arenas, caches, search, ladder};
  UseRecorder uses{environment, streams, pools, identities, caches, keepers};
  Checkpoints checkpoints{environment, devices, pools, caches};
  Report report{environment, devices, streams, arenas, caches};

 private:
  StreamRecord* Remembered(int device, CUstream stream) noexcept;  // nullptr: to be asked again
  bool TakeCached(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept;
  Block* TakeDirectly(Arena* arena, std::size_t bytes, StreamRecord* stream) noexcept;
  static void FreeDirectly(Arena* arena, Block* block) noexcept;
  static bool Turn(ThreadCache* cache, Arena* arena) noexcept;
  CUresult AllocateSlow(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;
};

}  // namespace cuaudit::alloc
