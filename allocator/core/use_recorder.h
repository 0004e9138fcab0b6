// SPDX-License-Identifier: MIT
// use_recorder.h: which streams use a block: noted now (RecordUse, KeepAliveUntil), promised for its end (RecordStream), and paid by Free.
//
//   Threads   any thread; the Editing bit of a block's state guards its uses, and only the stream's lock is taken for one in a slot.
//   Streams   RecordUse touches the stream in the call alone; a stream of RecordStream is touched at Free too.
//   Errors    as the methods of Allocator.
//   Faults    RecordUse: StreamIsCapturing, StreamGetCaptureInfo, EventCreate, EventRecord or StreamWriteValue64. KeepAliveUntil: as
//             Keepers. Free: StreamIsCapturing, StreamGetId, EventCreate, EventRecord for streams of RecordStream.
#pragma once

#include "allocator/requests/keepers.h"
#include "allocator/tables/identities.h"
#include "allocator/tables/thread_caches.h"

namespace cuaudit::alloc {

class UseRecorder {
 public:
  UseRecorder(Environment& environment, StreamTable& streams, PoolTable& pools, Identities& identities, ThreadCaches& caches,
              Keepers& keepers) noexcept
      : env_(environment), streams_(streams), pools_(pools), identities_(identities), caches_(caches), keepers_(keepers) {}
  CUresult RecordUse(CUdeviceptr address, StreamRecord* stream, CUstream live) noexcept;
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
  void WarnOfSharing() noexcept;
  CUresult AttachUse(Block* block, const char* call, StreamRecord* stream, std::uint64_t sequence, std::uint64_t* before) noexcept;
  void TraceUse(CUdeviceptr address, const StreamRecord* stream, std::uint64_t sequence) noexcept;
  CUresult MakeSlot(Block* block, CUdeviceptr address, StreamRecord* stream) noexcept;
  CUresult RecordNoted(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live, ThreadCache* cache) noexcept;
  void CountRecorded(CUdeviceptr address, const StreamRecord* stream, const Recording& recording, ThreadCache* cache) noexcept;
  CUresult RecordNow(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live, ThreadCache* cache) noexcept;
  CUresult RecordInContext(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live, ThreadCache* cache) noexcept;
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

}  // namespace cuaudit::alloc
