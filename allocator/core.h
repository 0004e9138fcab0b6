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
#include "allocator/device.h"
#include "allocator/environment.h"
#include "allocator/identities.h"
#include "allocator/pool_table.h"
#include "allocator/stream_table.h"
#include "allocator/thread_caches.h"

namespace cuaudit::alloc {

// A stream of KeepAliveUntil.
struct Keeper {
  CUstream stream = nullptr;
  StreamRecord* record = nullptr;
  Lock in_use{
      LockRank::Keeper};  // by one call at a time, driver calls included; nobody waits for it: who finds it held takes another keeper
  Keeper* next = nullptr;
};

class Core : public Environment {
 public:
  explicit Core(driver::DriverRef driver, const Options& options) noexcept;
  ~Core();
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
  bool Turn(ThreadCache* cache, Arena* arena) noexcept;

  // slow_path.cc
  CUresult Serve(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;
  CUresult AllocateSlow(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept;
  Block* TakeReady(Arena* arena, const Request& request, bool thorough, CUresult* error) noexcept;
  Block* TakeOther(Arena* arena, const Request& request, CUresult* error) noexcept;
  Block* TakePending(Arena* arena, const Request& request, CUresult* error) noexcept;
  CUresult StampForOthers(Arena* arena, const Request& request) noexcept;
  CUresult MakeWait(const Request& request, const Block* block, const Use& use, bool* granted) noexcept;
  CUresult PollWaiting(Arena* arena, std::size_t limit) noexcept;

  // captured_requests.cc
  CUresult LookAtCapture(const Pool* pool, Request* request) noexcept;
  CUresult EnterCapture(const Pool* pool, CUstream live, Request* request) noexcept;
  Block* TakeCaptured(Arena* arena, const Request& request, CUresult* error) noexcept;

  // ladder.cc
  CUresult Grow(Arena* arena, Request* request, Block** out) noexcept;
  CUresult GrowOnce(Arena* arena, Request* request, Block** out) noexcept;
  Block* BorrowFromPools(Arena* arena, const Request& request, CUresult* error) noexcept;
  CUresult OutOfMemoryOf(Arena* arena, const Request& request, std::size_t segment, CUresult driver_result) noexcept;

  // segments.cc, expandable.cc
  std::size_t SegmentSize(const Arena* arena, std::size_t size) const noexcept;
  CUresult AddSegment(Arena* arena, Request* request, Block** out) noexcept;
  CUresult Extend(Arena* arena, Request* request, Block** out) noexcept;
  CUresult ReleaseSegment(Segment* segment) noexcept;
  CUresult MakeRange(Arena* arena, bool large) noexcept;
  CUresult MapPages(Segment* segment, Block* block) noexcept;
  bool DropPage(Segment* segment, std::size_t page, CUresult* first) noexcept;
  CUresult UnmapSpan(Segment* segment, std::size_t first, std::size_t count, std::size_t* done) noexcept;
  CUresult UnmapPages(Block* block) noexcept;
  void ForgetSegment(Segment* segment) noexcept;
  CUresult DropRange(Segment* segment) noexcept;

  // release.cc
  bool MayCapture(Device* device) noexcept;
  CUresult SettleUse(StreamRecord* stream, std::uint64_t sequence, const Arena* arena, bool* settled) noexcept;
  CUresult SyncArena(Arena* arena) noexcept;
  CUresult EmptyArena(Arena* arena, std::size_t until_reserved, const PoolId* only) noexcept;
  CUresult EmptyDevice(Device* device, std::size_t until_reserved) noexcept;
  CUresult EmptyCache(const PoolId* only) noexcept;
  CUresult Trim(int device, std::size_t reserved_bytes) noexcept;
  bool ReleaseOversize(Arena* arena, const Request& request) noexcept;
  void CollectGarbage(Device* device, const Request& request) noexcept;

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
  CUresult MakeKeeper(Device* device, Keeper** out) noexcept;
  void LookAtKeepers(Device* device) noexcept;
  CUresult WaitAsKeeper(Device* device, CUevent event, Keeper** out, CaptureView* view, std::uint64_t* sequence) noexcept;
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
  Lock observers_lock;
  std::atomic<std::uint64_t> uses_recorded{0}, uses_own{0}, uses_merged{0}, uses_captured{0}, double_frees{0}, foreign_pointers{0},
      served_shared_pool{0};
  Warning warning;
  std::atomic<bool> has_warned{false};
  OomObserver oom_observers[8] = {};
  std::atomic<std::size_t> oom_observer_count{0};
  FreeMemoryCallback free_callbacks[8] = {};
  std::atomic<std::size_t> free_callback_count{0};

 private:
  CUresult CloseSegments(Arena* arena) noexcept;
};

}  // namespace cuaudit::alloc
