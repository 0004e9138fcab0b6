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
#include "allocator/device.h"
#include "allocator/environment.h"
#include "allocator/identities.h"
#include "allocator/keepers.h"
#include "allocator/ladder.h"
#include "allocator/pool_table.h"
#include "allocator/requests.h"
#include "allocator/search.h"
#include "allocator/segment_source.h"
#include "allocator/stream_table.h"
#include "allocator/synchronizer.h"
#include "allocator/thread_caches.h"

namespace cuaudit::alloc {

class Core : public Environment {
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
  bool Turn(ThreadCache* cache, Arena* arena) noexcept;

  // uses.cc
  CUresult FreeSlow(CUdeviceptr address) noexcept;
  CUresult RecordStream(CUdeviceptr address, StreamRecord* stream) noexcept;
  CUresult KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept;
  CUresult RecordCaptured(CUdeviceptr address, const char* call, StreamRecord* stream, const CaptureView& view,
                          bool may_owe = true) noexcept;
  CUresult RecordFor(Block* block, StreamRecord* stream) noexcept;
  CUresult RecordAtFree(Block* block, StreamRecord* stream) noexcept;
  void Owe(Block* block, StreamRecord* stream) noexcept;
  CUresult FindNamed(StreamRecord* named, StreamRecord** out) noexcept;
  static bool IsOwner(const Block* block, const StreamRecord* stream, std::uint64_t capture) noexcept;
  bool OweEager(Block* block, StreamRecord* stream, std::uint64_t capture) noexcept;
  Block* Edit(CUdeviceptr address, const char* call, CUresult* error) noexcept;
  Block* EditFound(Block* block, CUdeviceptr address, const char* call, CUresult* error) noexcept;
  void EndEdit(Block* block, std::uint64_t flags) noexcept;

  // record_use.cc
  CUresult RecordUse(CUdeviceptr address, StreamRecord* stream, CUstream live) noexcept;
  CUresult RecordUseByHandle(CUdeviceptr address, int device, CUstream stream) noexcept;  // fast_path.cc
  void WarnOfSharing() noexcept;
  CUresult AttachUse(Block* block, const char* call, StreamRecord* stream, std::uint64_t sequence, std::uint64_t* before) noexcept;
  void TraceUse(CUdeviceptr address, const StreamRecord* stream, std::uint64_t sequence) noexcept;
  CUresult MakeSlot(Block* block, CUdeviceptr address, StreamRecord* stream) noexcept;
  CUresult RecordNoted(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live) noexcept;
  void CountRecorded(CUdeviceptr address, const StreamRecord* stream, const Recording& recording) noexcept;
  CUresult RecordNow(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live) noexcept;
  CUresult RecordInContext(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live) noexcept;

  // checkpoint.cc
  CUresult TakeCheckpoint(int device, PoolId pool, Checkpoint* out) noexcept;
  CUresult RestoreCheckpoint(const Checkpoint& checkpoint, RestoreResult* out) noexcept;
  void RestoreArena(Arena* arena, const Checkpoint& checkpoint, Block** spares, RestoreResult* out) noexcept;

  // report.cc
  void GetStatistics(int device, Statistics* out) noexcept;
  void ResetPeaks(int device) noexcept;
  void ResetAccumulated(int device) noexcept;
  CUresult TakeSnapshot(Snapshot* out) noexcept;
  bool FindBlock(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) noexcept;

  Devices devices{*this};
  StreamTable streams{*this, devices};
  PoolTable pools{*this, devices, streams};
  Identities identities{*this, devices, streams, pools};
  ArenaTable arenas{*this};
  ThreadCaches caches{*this};
  Keepers keepers{*this, devices, streams};
  Synchronizer synchronizer{*this, streams, keepers};
  SegmentSource source{*this, synchronizer};
  CachedMemory cached{*this, devices, pools, arenas, caches, synchronizer, source};
  Search search{*this, streams, arenas, caches};
  Ladder ladder{*this, pools, arenas, caches, search, synchronizer, cached, source};
  Requests requests{*this, streams, pools, arenas, caches, search, ladder};
  Warning warning;
  std::atomic<bool> has_warned{false};
};

}  // namespace cuaudit::alloc
