// SPDX-License-Identifier: MIT
// core.h: the parts behind allocator.h, and the path without locks.
#pragma once

#include "allocator/allocator.h"
#include "allocator/requests/requests.h"
#include "allocator/requests/synchronizer.h"
#include "allocator/snapshot.h"
#include "allocator/statistics.h"
#include "allocator/tables/identities.h"
#include "allocator/tables/pool_table.h"
#include "allocator/tables/stream_table.h"
#include "allocator/tables/thread_cache.h"

namespace cuaudit::alloc {

// Which streams use a block: noted now (RecordUse, KeepAliveUntil), promised for its end (RecordStream), and paid by Free.
//
//   Threads   any thread; the Editing bit of a block's state guards its uses, and only the stream's lock is taken for one in a slot.
//   Streams   RecordUse touches the stream in the call alone; a stream of RecordStream is touched at Free too.
//   Errors    as the methods of Allocator.
//   Faults    RecordUse: StreamIsCapturing, StreamGetCaptureInfo, EventCreate, EventRecord or StreamWriteValue64. KeepAliveUntil: as
//             Keepers. Free: StreamIsCapturing, StreamGetId, EventCreate, EventRecord for streams of RecordStream.
class UseRecorder {
 public:
  UseRecorder(Environment& environment, StreamTable& streams, PoolTable& pools, Identities& identities, ThreadCaches& caches,
              Keepers& keepers) noexcept
      : env_(environment), streams_(streams), pools_(pools), identities_(identities), caches_(caches), keepers_(keepers) {}
  CUresult RecordUse(CUdeviceptr address, StreamRecord* stream) noexcept;
  CUresult RecordUse(CUdeviceptr address, StreamRecord* stream, CUstream live) noexcept;
  // The driver has just been asked whether the stream is in a capture, and `stream` is what it is there.
  CUresult RecordUseAsked(CUdeviceptr address, StreamRecord* stream, CUstream live) noexcept;
  CUresult RecordStream(CUdeviceptr address, StreamRecord* stream) noexcept;
  CUresult KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept;
  CUresult Free(CUdeviceptr address) noexcept;  // when the fast path does not

  Warning warning;  // set while there is one thread

 private:
  // The live block that begins there, kept from being freed or edited until EndEdit.
  Block* Edit(CUdeviceptr address, const char* call, CUresult* error) noexcept;
  static Block* EditFound(Block* block, CUdeviceptr address, const char* call, CUresult* error) noexcept;
  static void EndEdit(Block* block, std::uint64_t flags) noexcept;
  // record_use.cc
  CUresult RecordUse(CUdeviceptr address, StreamRecord* stream, CUstream live, bool is_asked) noexcept;
  void WarnOfSharing() noexcept;
  CUresult AttachUse(Block* block, const char* call, StreamRecord* stream, std::uint64_t sequence, std::uint64_t* before) noexcept;
  void TraceUse(CUdeviceptr address, const StreamRecord* stream, std::uint64_t sequence) noexcept;
  CUresult MakeSlot(Block* block, CUdeviceptr address, StreamRecord* stream) noexcept;
  CUresult RecordNoted(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live, ThreadCache* cache) noexcept;
  void CountRecorded(CUdeviceptr address, const StreamRecord* stream, std::uint64_t sequence, std::uint64_t before,
                     ThreadCache* cache) noexcept;
  CUresult RecordOutside(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live, ThreadCache* cache) noexcept;
  CUresult RecordLooked(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live, ThreadCache* cache) noexcept;
  CUresult RecordNow(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live, bool is_asked, ThreadCache* cache) noexcept;
  CUresult RecordInContext(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live, bool is_asked,
                           ThreadCache* cache) noexcept;
  // uses.cc
  CUresult RecordCaptured(CUdeviceptr address, const char* call, StreamRecord* stream, const CaptureView& view,
                          bool may_owe = true) noexcept;
  CUresult RecordFor(Block* block, StreamRecord* stream) noexcept;
  CUresult RecordAtFree(Block* block, StreamRecord* stream) noexcept;
  CUresult FindNamed(StreamRecord* named, StreamRecord** out) noexcept;

  Environment& env_;
  StreamTable& streams_;
  PoolTable& pools_;
  Identities& identities_;
  ThreadCaches& caches_;
  Keepers& keepers_;
  std::atomic<bool> has_warned_{false};
};

// How a private pool is cut up, taken and put back.
//
//   Threads   nobody else may use the pool meanwhile; an arena's lock is held while it is read or restored.
//   Errors    as Allocator::TakeCheckpoint and RestoreCheckpoint; then nothing is changed.
//   Faults    makes no driver calls.
class Checkpoints {
 public:
  Checkpoints(Environment& environment, Devices& devices, PoolTable& pools, ThreadCaches& caches) noexcept
      : env_(environment), devices_(devices), pools_(pools), caches_(caches) {}
  CUresult Take(int device, PoolId pool, Checkpoint* out) noexcept;
  CUresult Restore(const Checkpoint& checkpoint, RestoreResult* out) noexcept;

 private:
  void RestoreArena(Arena* arena, const Checkpoint& checkpoint, Block** spares, RestoreResult* out) noexcept;
  Environment& env_;
  Devices& devices_;
  PoolTable& pools_;
  ThreadCaches& caches_;
};

// Figures and pictures of an allocator: statistics, snapshots, which block an address lies in.
//
//   Threads   any thread; arenas are locked one after the other, so figures of several may be of different moments.
//   Errors    TakeSnapshot: NOT_INITIALIZED, ILLEGAL_STATE, OUT_OF_MEMORY.
//   Faults    makes no driver calls.
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

// The parts behind allocator.h, and the path without locks.
//
//   Owns      the parts. Each is handed those that it needs when it is made, and knows no other: a part sees only parts above it.
//   Threads   each part says so; all locks are in lock_order.def. An allocation from the cache and a plain Free take none that is held
//             across driver calls, and mostly none at all.
//   Errors, Faults   as in allocator.h.
class Core {
 public:
  Core(driver::DriverRef driver, const Options& options) noexcept : environment(driver, options) {}
  CUresult Open(const DeviceConfig* devices, int count) noexcept;
  CUresult Close(std::size_t* live_blocks) noexcept;
  CUresult Allocate(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept;
  CUresult Allocate(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;
  CUresult Allocate(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept;
  CUresult Free(CUdeviceptr address) noexcept;
  CUresult RecordUse(CUdeviceptr address, int device, CUstream stream) noexcept;

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
  void Remember(int device, CUstream stream, StreamRecord* record) noexcept;
  StreamRecord* NameBelieved(int device, CUstream stream) noexcept;
  bool TakeKept(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept;
  static void HandKept(ThreadCache::Latest* latest, Block* block, std::size_t bytes, CUdeviceptr* out) noexcept;
  bool TakeBelieved(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept;
  bool TakeOtherwise(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept;
  Block* TakeDirectly(Arena* arena, std::size_t bytes, StreamRecord* stream) noexcept;
  CUresult AllocateAsked(Device* target, int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept;
  CUresult AllocateBelieved(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept;
  static CUresult RefuseOfOther(int device) noexcept;
  CUresult AllocateOtherwise(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;
  CUresult AllocateSlow(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;
  CUresult FreeOtherwise(CUdeviceptr address) noexcept;
  CUresult PutOtherwise(Block* block) noexcept;
  CUresult PutOrReturn(Block* block) noexcept;
};

}  // namespace cuaudit::alloc
