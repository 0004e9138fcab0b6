// SPDX-License-Identifier: MIT
// synchronizer.h: waits on the host until uses are over, as far as no capture forbids it.
//
//   Threads   any thread. Device::settling is held while a whole context is waited for; an arena's lock never.
//   Errors    CUresult as the driver gave it.
//   Faults    EventSynchronize, CtxSynchronize; StreamGetCaptureInfo about streams of KeepAliveUntil.
#pragma once

#include "allocator/requests/keepers.h"

namespace cuaudit::alloc {

class Synchronizer {
 public:
  Synchronizer(Environment& environment, StreamTable& streams, Keepers& keepers) noexcept
      : env_(environment), streams_(streams), keepers_(keepers) {}
  bool MayCapture(Device* device) noexcept;  // a capture is known, or soon to begin
  // To wait for that takes the whole context, which a capture in it forbids.
  static bool NeedsContext(StreamRecord* stream, std::uint64_t sequence) noexcept {
    return !stream->IsOver(sequence) && (stream->word != nullptr || !stream->IsRecorded(sequence));
  }
  // Waits for the use. `*settled` false: it did not, since that takes the whole context and would end a capture there.
  CUresult SettleUse(StreamRecord* stream, std::uint64_t sequence, const Arena* arena, bool* settled) noexcept;
  // Waits for exactly the uses that blocks of the arena wait for; those of a capture stay, and so do those that only the end of a capture
  // can settle.
  CUresult SyncArena(Arena* arena) noexcept;

 private:
  Environment& env_;
  StreamTable& streams_;
  Keepers& keepers_;
};

}  // namespace cuaudit::alloc
