// SPDX-License-Identifier: MIT
// synchronizer.h: waits on the host, and streams of the allocator's own that wait for events of KeepAliveUntil.
#pragma once

#include "allocator/tables/stream_table.h"

namespace cuaudit::alloc {

struct Keeper {
  CUstream stream = nullptr;
  StreamRecord* record = nullptr;
  Lock in_use{LockRank::Keeper};  // by one call at a time: who finds it held takes another keeper
  Keeper* next = nullptr;
};

// Streams of the allocator's own that wait for events of KeepAliveUntil.
//
//   Owns      the streams, per device one for each of the calls and captures that it met at once, until DestroyAll.
//   Threads   any thread. A keeper's `in_use` is held across driver calls, and nobody waits for it.
//   Errors    CUresult as the driver gave it; OUT_OF_MEMORY when host memory ran out.
//   Faults    Wait: StreamCreate, StreamGetId, StreamDestroy, StreamIsCapturing, StreamWaitEvent, and a recording. LookAt:
//             StreamGetCaptureInfo.
class Keepers {
 public:
  Keepers(Environment& environment, StreamTable& streams) noexcept : env_(environment), streams_(streams) {}
  ~Keepers();
  // A stream of ours waits for the callers' events, so they need not outlive the call; later ones stand behind earlier ones. Calls that
  // come at once each have one. An event of a capture takes the stream that waits for it into the capture, where it may not wait for
  // anything outside: until that is over, another one does. `view`: the capture, and what the event stands for in it; else `*sequence` is a
  // recording behind the event.
  CUresult Wait(Device* device, CUevent event, StreamRecord** out, CaptureView* view, std::uint64_t* sequence) noexcept;
  // Those that were taken into a capture: ours, so they can be asked whether it is over, though nobody names a stream of it any more.
  void LookAt(Device* device) noexcept;
  CUresult DestroyAll(std::uint64_t* refused) noexcept;  // none twice; the first error

 private:
  CUresult Make(Device* device, Keeper** out) noexcept;
  Environment& env_;
  StreamTable& streams_;
  std::atomic<Keeper*> first_[kMaxDevices] = {};  // of each device
};

// Waits on the host until uses are over, as far as no capture forbids it.
//
//   Threads   any thread. Device::settling is held while a whole context is waited for; an arena's lock never.
//   Errors    CUresult as the driver gave it.
//   Faults    EventSynchronize, CtxSynchronize; StreamGetCaptureInfo about streams of KeepAliveUntil.
class Synchronizer {
 public:
  Synchronizer(Environment& environment, StreamTable& streams, Keepers& keepers) noexcept
      : env_(environment), streams_(streams), keepers_(keepers) {}
  // Waits for the use. `*settled` false: it did not, since that takes the whole context and would end a capture there.
  CUresult SettleUse(StreamRecord* stream, std::uint64_t sequence, const Arena* arena, bool* settled) noexcept;
  // Waits for exactly the uses that blocks of the arena wait for; those of a capture stay, and so do those that only the end of a capture
  // can settle.
  CUresult SyncArena(Arena* arena) noexcept;

 private:
  bool MayCapture(Device* device) noexcept;  // a capture is known, or soon to begin
  Environment& env_;
  StreamTable& streams_;
  Keepers& keepers_;
};

}  // namespace cuaudit::alloc
