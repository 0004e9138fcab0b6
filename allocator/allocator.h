// SPDX-License-Identifier: MIT
// allocator.h: a caching device allocator with PyTorch's rules, RecordUse, and a path without locks for what is cached.
//
//   Owns      segments, address ranges, physical handles, events, streams for KeepAliveUntil (per device one for each of the calls and
//             captures that it met at once), mapped host memory for Completion::StreamWrites, and one reference to each device's primary
//             context unless a context was given. Borrows the DriverRef, contexts, streams, observers.
//   Threads   every method from any thread, except Create, Close and the destructor: nobody else may be in a call then. No driver call
//             is made with an arena's lock held; Free waits for no other thread's search. A thread that ends leaves its cache to the next one.
//   Streams   a stream is touched only in calls that were handed it, so it may be destroyed at any time between; but one of RecordStream
//             must live until Free, or RetireStream: its handle is used once more. A handle that is another stream's by then is found out,
//             and answers INVALID_HANDLE; one that is nobody's crashes a genuine driver. Freeing a block of a destroyed stream is fine;
//             its memory serves others once RetireStream told of it, or after EmptyCache.
//             With trust_stream_handles and remap_budget, a stream that freed memory may also be recorded on in calls that name others,
//             until RetireStream has returned, unless it is being captured.
//   Captures  MUST be announced: BeginAllocateToPool before, or Identify in the capture before it allocates. Memory for a capture is then
//             kept apart from what its streams use outside, whichever StreamRef or trusted handle names them. The cached path asks the
//             driver nothing, so it cannot know of any other capture: UP TO 60 ALLOCATIONS (capture_check_interval less one) OF A CAPTURE
//             THAT WAS NOT ANNOUNCED MAY BE SERVED WITH MEMORY THAT OTHER WORK STILL USES OR GETS LATER. The first that
//             finds nothing free, or the 61st, and all after that are refused with ILLEGAL_STATE: whoever is told so throws the graph
//             away. `capture_check_interval` 1 refuses the first. A thread's default stream is asked on its own thread only.
//             Where only waiting for a whole context tells that memory is free, which ends every capture in it, that stays as it is while
//             a capture that was announced may be open: until EndAllocateToPool, or until a stream of it is seen outside. Identify
//             announces late: what empties a cache before it may end the capture. BeginAllocateToPool, before the capture, is never late.
//             Nothing closes that gap: cuStreamIsCapturing needs a stream of the capture, and on the legacy stream tells of blocking
//             streams alone; a call that captures forbid ends them by being asked; and waiting for a context does so in the relaxed mode
//             too (capture_mode.context_synchronize), which cuThreadExchangeStreamCaptureMode therefore cannot help.
//             A stream that is destroyed after its capture without RetireStream tells nobody that it is over. The next stream of that
//             handle does, outside or in another capture; until then `streams_in_capture` counts it.
//             Memory from outside that a graph uses must live as long as the graph: nothing tells the allocator when that runs.
//   Contexts  MUST live, unreset, until Close has returned. cuDevicePrimaryCtxReset and cudaDeviceReset while an allocator is open, and a
//             context lost to a sticky error, are NOT SUPPORTED: the cached memory is gone with the context, but the cached path makes
//             no driver call, so it still answers SUCCESS, with addresses that are no longer valid. Calls that reach the driver fail.
//             Close then answers the driver's error and may keep its reference to the context. Close before a reset.
//   Units     bytes.
//   Errors    CUresult as the driver gave it, or INVALID_VALUE (argument), INVALID_CONTEXT (stream of another context), OUT_OF_MEMORY,
//             ILLEGAL_STATE (order of calls; a capture not announced), NOT_INITIALIZED (a forked child: it never reaches the driver),
//             DEINITIALIZED (the process is exiting: driver objects are left alone). The driver may give any of these too; of Free,
//             FindBlock tells. noexcept.
//   Faults    per method below. Every one of them may fail: then nothing is lost and no lock is held.
//   Source    PyTorch c10/cuda/CUDACachingAllocator.cpp (sizes, pools, order of the ladder); CUDA Driver API 13.0.
//   Not here  option texts, histories, pickles, C functions, memory resources.
#pragma once

#include <memory>

#include "allocator/backend.h"
#include "allocator/options.h"
#include "allocator/pool.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

struct DeviceConfig {
  CUdevice device = 0;
  CUcontext context = nullptr;  // borrowed; null: the device's primary context, retained until Close
};

class Core;  // all parts of it

class Allocator final : public Backend {
 public:
  // Calls DevicePrimaryCtxRetain, DeviceGetAttribute, DeviceTotalMem, MemGetAllocationGranularity, DevicePrimaryCtxRelease. On failure
  // `*out` is empty and nothing is held. INVALID_VALUE: no device, or Check(options) is not null.
  [[nodiscard]] static CUresult Create(driver::DriverRef driver, const DeviceConfig* devices, int count, const Options& options,
                                       std::unique_ptr<Allocator>* out) noexcept;
  ~Allocator() override;  // calls Close and drops its error

  // Releases everything, also blocks that users still hold: `*live_blocks` (may be null) is how many those are. Answers the first error
  // and releases the rest all the same. The next Close tries again what the allocator can prove to be still its own, and nothing else
  // (docs/ALLOCATOR.md, "Releases that fail"). Close also releases when the driver does not say which context is current, and when it
  // refuses to set the capture mode. Afterwards only Close, GetStatistics and the destructor may be called.
  // Driver calls: those of EmptyCache, EventSynchronize, PointerGetAttribute, EventDestroy, StreamDestroy, MemFreeHost, MemAddressFree,
  // DevicePrimaryCtxRelease.
  [[nodiscard]] CUresult Close(std::size_t* live_blocks = nullptr) noexcept;

  const char* Name() const noexcept override { return "native"; }
  UsePrecision Precision() const noexcept override { return UsePrecision::AtTheCall; }
  const Options& options() const noexcept;
  int device_count() const noexcept;

  // The stream's identity; `device` matters for the default streams (0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD) only.
  // A stream that is being captured has another identity than outside, one for all captures that go to the same private pool, or for this
  // capture alone; the driver tells no better one. A StreamRef made before stands for that one in Allocate, once the capture was announced,
  // and for the stream itself afterwards; one made in a capture is refused outside.
  // Driver calls: StreamIsCapturing, then StreamGetId, or StreamGetCaptureInfo and StreamGetCtx during a capture. The first call for a
  // stream also makes StreamGetCtx. For a default stream, or when no context is current, CtxGetCurrent and CtxPushCurrent come before and
  // CtxPopCurrent after. About the legacy stream (0, CU_STREAM_LEGACY) of a primary context that the allocator retained, only the first
  // call asks, and not whether it is captured; later ones make no driver call until RetireStream. With trust_stream_handles that is so of
  // the latest stream of each handle, and of given contexts.
  [[nodiscard]] CUresult Identify(int device, CUstream stream, StreamRef* out) noexcept;

  // Driver calls, in the order in which they become necessary:
  // - none, when the thread's cache has such a block; but every `capture_check_interval`-th such request makes the next one;
  // - StreamIsCapturing, and StreamGetCaptureInfo in a capture;
  // - when no block is known to be free: EventQuery, StreamIsCapturing, StreamGetCaptureInfo, StreamWaitEvent, EventRecord;
  // - for new memory: MemAlloc, or MemAddressReserve, MemCreate, MemMap and MemSetAccess, which MemUnmap and MemRelease undo. With
  //   remap_budget also EventQuery, EventCreate, EventRecord and StreamIsCapturing about streams that freed pages, and MemUnmap;
  // - when the device is full: those of EmptyCache, and MemGetInfo.
  // ThreadExchangeStreamCaptureMode stands around calls that a capture would forbid.
  [[nodiscard]] CUresult Allocate(std::size_t bytes, StreamRef stream, CUdeviceptr* out) noexcept;
  // Identify, then the same.
  [[nodiscard]] CUresult Allocate(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept override;
  // INVALID_HANDLE: a handle that RecordStream was given is another stream's by now. The block is freed, and waits until everything is
  // synchronised. Driver calls: none, unless RecordStream named streams of the block: then StreamIsCapturing, StreamGetId, EventCreate and
  // EventRecord for each.
  [[nodiscard]] CUresult Free(CUdeviceptr address) noexcept override;
  // The stream must live until Free or RetireStream. Driver calls: those of Identify.
  [[nodiscard]] CUresult RecordStream(CUdeviceptr address, CUstream stream) noexcept override;
  [[nodiscard]] CUresult RecordStream(CUdeviceptr address, StreamRef stream) noexcept;
  // The stream may be another device's. Driver calls: those of Identify, StreamGetCaptureInfo, and EventRecord or StreamWriteValue64;
  // EventCreate when no event is left over from an earlier use.
  [[nodiscard]] CUresult RecordUse(CUdeviceptr address, CUstream stream) noexcept override;
  [[nodiscard]] CUresult RecordUse(CUdeviceptr address, StreamRef stream) noexcept;
  // An event that was recorded in a capture stands for captured work, as a RecordUse there.
  // Driver calls: StreamIsCapturing, StreamWaitEvent, EventCreate, EventRecord; StreamGetCaptureInfo for an event of a capture. The wait is
  // enqueued on a stream of the allocator's own: StreamCreate and StreamGetId make another one when those it has are in captures or in
  // use by other calls.
  [[nodiscard]] CUresult KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept override;
  bool FindBlock(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) const noexcept override;

  // The stream is about to be destroyed, or will neither allocate again nor be given to RecordStream (ILLEGAL_STATE): what it leaves serves
  // others as soon as its work is over. What RecordStream promised for it is paid: later work of it is told of by RecordUse. With an error
  // the stream is what it was, and RetireStream may be called again. Driver calls: those of Identify, EventCreate, EventRecord.
  [[nodiscard]] CUresult RetireStream(int device, CUstream stream) noexcept;

  // Cached memory goes back to the driver: of the shared pool and of private ones without users, of one pool, or until no more than that
  // is reserved. Driver calls: EventSynchronize; CtxSynchronize for expandable segments and for pools with their own release;
  // PointerGetAttribute, MemFree, MemUnmap, MemRelease, ThreadExchangeStreamCaptureMode; StreamGetCaptureInfo about streams of
  // KeepAliveUntil that are in captures.
  [[nodiscard]] CUresult EmptyCache() noexcept override;
  [[nodiscard]] CUresult EmptyCache(PoolId pool) noexcept;
  [[nodiscard]] CUresult Trim(int device, std::size_t reserved_bytes) noexcept override;
  // (0, 1] of the device's memory; calls nothing, releases nothing.
  [[nodiscard]] CUresult SetMemoryFraction(int device, double fraction) noexcept;

  // A pool starts with one user. BeginAllocateToPool adds a user and a route; EndAllocateToPool removes the route; what was freed in the
  // capture with uses in it is then free. ReleasePool removes a user; the last one leaves the pool's cached segments to EmptyCache.
  [[nodiscard]] CUresult CreatePool(const PoolOptions& options, PoolId* out) noexcept;
  [[nodiscard]] CUresult BeginAllocateToPool(int device, PoolId pool, const Route& route) noexcept;
  [[nodiscard]] CUresult EndAllocateToPool(int device, PoolId pool) noexcept;
  [[nodiscard]] CUresult ReleasePool(PoolId pool) noexcept;
  // How a private pool is cut up. ILLEGAL_STATE while it has pending uses. Restoring frees what the pool has allocated since and allocates
  // what the checkpoint had; the pool must still have its segments (more are left cached), and each block be one that its `requested`
  // can get there: else INVALID_VALUE, and nothing is changed. Neither makes driver calls.
  [[nodiscard]] CUresult TakeCheckpoint(int device, PoolId pool, Checkpoint* out) noexcept;
  [[nodiscard]] CUresult RestoreCheckpoint(const Checkpoint& checkpoint, RestoreResult* out) noexcept;

  // No driver calls in any of these.
  void GetStatistics(int device, Statistics* out) const noexcept override;
  void ResetPeaks(int device) noexcept override;
  void ResetAccumulated(int device) noexcept override;
  [[nodiscard]] CUresult TakeSnapshot(Snapshot* out) const noexcept override;
  void SetTracer(const Tracer& tracer) noexcept;     // {} for none; no other call may be under way
  void SetWarning(const Warning& warning) noexcept;  // when stamps_shared first counts; {} for none; no other call may be under way
  [[nodiscard]] CUresult AddOomObserver(const OomObserver& observer) noexcept;                // at most 8
  [[nodiscard]] CUresult AddFreeMemoryCallback(const FreeMemoryCallback& callback) noexcept;  // at most 8
  const char* LastErrorText() const noexcept override;
  // Of this thread's latest failed Allocate; all zero if there was none.
  OutOfMemory LastOutOfMemory() const noexcept;

 private:
  explicit Allocator(Core* core) noexcept : core_(core) {}
  int DeviceOf(CUdeviceptr address) const noexcept;
  Core* core_;
};

}  // namespace cuaudit::alloc
