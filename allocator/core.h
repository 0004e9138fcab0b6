// SPDX-License-Identifier: MIT
// core.h: the allocator behind allocator.h: its tables, and the steps of an allocation.
//
//   Owns      what allocator.h says the allocator owns.
//   Threads   tables grow at their heads by compare-and-exchange and never shrink before Close, so walking them needs no lock.
//             Locks are taken in the order of lock_order.def.
//             Driver calls are made with the first three held, of which Free, RecordUse, RecordStream, KeepAliveUntil and an allocation
//             from the cache take none: growing is waited for by who finds nothing free there, releasing by who releases or was refused by
//             the driver, settling by who waits for a whole context or begins a route. And with a Keeper's in_use, which nobody waits for.
//             With any other lock none is made, but in Close: so events are recorded, queried and waited for outside locks.
//   Errors, Faults   as in allocator.h. Each file below implements the part that its name says.
//   Source    the order of the steps: facts of PyTorch's malloc and alloc_block; policies ours.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/arena_table.h"
#include "allocator/cached_memory.h"
#include "allocator/checkpoints.h"
#include "allocator/device.h"
#include "allocator/environment.h"
#include "allocator/identities.h"
#include "allocator/keepers.h"
#include "allocator/ladder.h"
#include "allocator/pool_table.h"
#include "allocator/report.h"
#include "allocator/requests.h"
#include "allocator/search.h"
#include "allocator/segment_source.h"
#include "allocator/stream_table.h"
#include "allocator/synchronizer.h"
#include "allocator/thread_caches.h"
#include "allocator/use_recorder.h"

namespace cuaudit::alloc {

class Core {
 public:
  explicit Core(driver::DriverRef driver, const Options& options) noexcept;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // core.cc
  CUresult Open(const DeviceConfig* devices, int count) noexcept;
  CUresult Close(std::size_t* live_blocks) noexcept;

  // fast_path.cc
  CUresult Allocate(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept;
  CUresult Allocate(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;
  CUresult Free(CUdeviceptr address) noexcept;
  // Without asking which stream the handle is. False: it has to be asked.
  bool AllocateRemembered(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept;
  StreamRecord* Remembered(int device, CUstream stream) noexcept;  // nullptr: to be asked again
  void Remember(int device, CUstream stream, StreamRecord* record) noexcept;
  bool TakeCached(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept;
  Block* TakeDirectly(Arena* arena, std::size_t bytes, StreamRecord* stream) noexcept;
  void FreeDirectly(Arena* arena, Block* block) noexcept;
  CUresult AllocateSlow(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;
  CUresult RecordUseByHandle(CUdeviceptr address, int device, CUstream stream) noexcept;
  bool Turn(ThreadCache* cache, Arena* arena) noexcept;

  Environment environment;
  Devices devices{environment};
  StreamTable streams{environment, devices};
  PoolTable pools{environment, devices, streams};
  Identities identities{environment, devices, streams, pools};
  ArenaTable arenas{environment};
  ThreadCaches caches{environment};
  Keepers keepers{environment, devices, streams};
  Synchronizer synchronizer{environment, streams, keepers};
  SegmentSource source{environment, synchronizer};
  CachedMemory cached{environment, devices, pools, arenas, caches, synchronizer, source};
  Search search{environment, streams, arenas, caches};
  Ladder ladder{environment, pools, arenas, caches, search, synchronizer, cached, source};
  Requests requests{environment, streams, pools, arenas, caches, search, ladder};
  UseRecorder uses{environment, streams, pools, identities, caches, keepers};
  Checkpoints checkpoints{environment, devices, pools, caches};
  Report report{environment, devices, streams, arenas, caches};
};

}  // namespace cuaudit::alloc
