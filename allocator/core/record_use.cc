// SPDX-License-Identifier: MIT
#include <cstdio>

#include "allocator/core/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {

// Once: a loop that records faster than the stream works would say it each time.
[[gnu::cold]] void UseRecorder::WarnOfSharing() noexcept {
  if (has_warned_.exchange(true, std::memory_order_relaxed)) return;
  char text[200];
  (void)std::snprintf(
      text, sizeof(text),
      "RecordUse: a stream has %u recorded uses that are not over (max_stamps_per_stream): older ones now share a stamp, and "
      "count as over later than they are",
      env_.options.max_stamps_per_stream);
  warning.warn(warning.self, text);
}

// Adds to a block that Edit answered, and ends that. `before` gets what the stream's entry was.
CUresult UseRecorder::AttachUse(Block* block, const char* call, StreamRecord* stream, std::uint64_t sequence,
                                std::uint64_t* before) noexcept {
  const bool done = block->uses.Add(stream, sequence, RoomBeyond(block), before);
  if (done) block->noted.store(true, std::memory_order_relaxed);
  EndEdit(block, done ? kHasUses : 0);
  return done ? CUDA_SUCCESS : Refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s: no host memory", call);
}

void UseRecorder::TraceUse(CUdeviceptr address, const StreamRecord* stream, std::uint64_t sequence) noexcept {
  CUresult error = CUDA_SUCCESS;
  Block* const block = Edit(address, "RecordUse", &error);
  if (block == nullptr) return;
  block->arena.load(std::memory_order_relaxed)->Trace(TraceAction::UseRecorded, address, block->size, 0, nullptr, stream->id, 0, sequence);
  EndEdit(block, 0);
}

// Gives the stream a slot of the block: another stream's that has not used this life of the block. If all have, the last slot goes from one
// stream to the next, which are so served as quickly as the others unless they take turns.
[[gnu::cold]] CUresult UseRecorder::MakeSlot(Block* block, CUdeviceptr address, StreamRecord* stream) noexcept {
  CUresult result = CUDA_SUCCESS;
  if (EditFound(block, address, "RecordUse", &result) == nullptr) return result;
  UseSlots& slots = block->slots;
  std::uint64_t flags = 0;
  if (slots.Find(stream) == UseSlots::kCount) {  // another thread may have been first
    std::size_t at = slots.Find(nullptr);
    for (std::size_t i = 0; i < UseSlots::kCount && at == UseSlots::kCount; ++i) {
      if (slots.sequence[i].load(std::memory_order_relaxed) == 0 && slots.stream[i].load(std::memory_order_relaxed)->Leave(&slots, i))
        at = i;
    }
    if (at == UseSlots::kCount && block->uses.Reserve(block->uses.size() + 1 + RoomBeyond(block))) {
      at = UseSlots::kCount - 1;
      StreamRecord* const other = slots.stream[at].load(std::memory_order_relaxed);
      if (const std::uint64_t sequence = other->Vacate(&slots, at); sequence != 0) {
        (void)block->uses.Add(other, sequence);
        block->noted.store(true, std::memory_order_relaxed);
      }
      flags = kHasUses;
    }
    if (at != UseSlots::kCount) {
      const std::uint64_t sequence = block->uses.Take(stream);
      if (sequence != 0) block->used.store(true, std::memory_order_relaxed);
      stream->Occupy(&slots, at, sequence);
    }
  }
  EndEdit(block, flags);
  return CUDA_SUCCESS;
}

// The use is noted before the driver is called, since until the recording returns nobody can take it for over.
[[gnu::noinline]] CUresult UseRecorder::RecordNoted(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live,
                                                    ThreadCache* cache) noexcept {
  CUresult result = CUDA_SUCCESS;
  if (block->slots.Find(stream) == UseSlots::kCount) result = MakeSlot(block, address, stream);
  if (result != CUDA_SUCCESS) return result;
  Recording recording;
  result = stream->Begin(env_.driver, &recording, &block->slots);
  if (result != CUDA_SUCCESS) return result;
  const bool in_slot = recording.slot != UseSlots::kCount;
  if (in_slot) {
    block->used.store(true, std::memory_order_relaxed);
  } else if (EditFound(block, address, "RecordUse", &result) != nullptr) {
    result = AttachUse(block, "RecordUse", stream, recording.sequence, &recording.before);
  }
  if (result != CUDA_SUCCESS) {
    stream->Cancel(recording);
    return result;
  }
  result = stream->Send(env_.driver, live, recording);
  if (result == CUDA_SUCCESS) {
    CountRecorded(address, stream, recording.sequence, recording.before, cache);
    return result;
  }
  CUresult error = CUDA_SUCCESS;
  if (!in_slot && EditFound(block, address, "RecordUse", &error) != nullptr) {
    const bool withdrawn = block->uses.Withdraw(stream, recording.sequence, recording.before);
    EndEdit(block, 0);
    // A use that was added since may fall back to this one: then the next recording ends it.
    if (!withdrawn) stream->Want(recording.sequence);
  }
  stream->Cancel(recording);  // from here on the number is another's
  return result;
}

[[gnu::always_inline]] inline void UseRecorder::CountRecorded(CUdeviceptr address, const StreamRecord* stream, std::uint64_t sequence,
                                                              std::uint64_t before, ThreadCache* cache) noexcept {
  CountUse(cache, &ThreadCache::uses_recorded, &env_.uses_recorded);
  if (before != 0) CountUse(cache, &ThreadCache::uses_merged, &env_.uses_merged);
  if (stream->shared.load(std::memory_order_relaxed) != 0 && warning.warn != nullptr && !has_warned_.load(std::memory_order_relaxed))
      [[unlikely]]
    WarnOfSharing();
  if (env_.Traced()) [[unlikely]]
    TraceUse(address, stream, sequence);
}

// Of a stream that is in no capture.
[[gnu::always_inline]] inline CUresult UseRecorder::RecordOutside(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live,
                                                                  ThreadCache* cache) noexcept {
  const std::size_t slot = block->slots.Find(stream);
  StreamRecord::QuickRecording recording;
  if (slot == UseSlots::kCount || !stream->BeginQuick(&block->slots, slot, &recording)) [[unlikely]]
    return RecordNoted(block, address, stream, live, cache);
  if (!block->used.load(std::memory_order_relaxed)) block->used.store(true, std::memory_order_relaxed);
  const CUresult result = env_.driver.EventRecord(recording.event, live);
  if (result != CUDA_SUCCESS) [[unlikely]] {
    stream->CancelQuick(recording.sequence, recording.before, &block->slots);
    return result;
  }
  stream->Returned(recording.sequence);
  CountRecorded(address, stream, recording.sequence, recording.before, cache);
  return CUDA_SUCCESS;
}

// RecordUse for a stream that is being captured, or was captured before.
[[gnu::noinline]] CUresult UseRecorder::RecordLooked(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live,
                                                     ThreadCache* cache) noexcept {
  CaptureView view;
  const CUresult result = streams_.LookAt(stream, live, &view);
  if (result != CUDA_SUCCESS) return result;
  if (view.id != 0) return RecordCaptured(address, "RecordUse", stream, view);
  return RecordOutside(block, address, stream, live, cache);
}

[[gnu::always_inline]] inline CUresult UseRecorder::RecordNow(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live,
                                                              bool is_asked, ThreadCache* cache) noexcept {
  // The cheapest question first, and mostly the answer is no.
  if (stream->capture.load(std::memory_order_acquire) != 0 || env_.captured_streams.load(std::memory_order_acquire) != 0) [[unlikely]]
    return RecordLooked(block, address, stream, live, cache);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = is_asked ? CUDA_SUCCESS : env_.driver.StreamIsCapturing(live, &status);
  if (result != CUDA_SUCCESS) [[unlikely]]
    return result;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? RecordOutside(block, address, stream, live, cache)
                                                 : RecordLooked(block, address, stream, live, cache);
}

// For default streams; and where a driver insists on a current context and there was none.
CUresult UseRecorder::RecordInContext(Block* block, CUdeviceptr address, StreamRecord* stream, CUstream live, bool is_asked,
                                      ThreadCache* cache) noexcept {
  CurrentContext current(env_.driver, stream->context, !stream->is_default);
  if (current.result() != CUDA_SUCCESS) return current.result();
  if (!stream->is_default && !current.has_pushed()) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult result = RecordNow(block, address, stream, live, is_asked, cache);
  const CUresult left = current.Leave();
  return result != CUDA_SUCCESS ? result : left;
}

[[gnu::always_inline]] inline CUresult UseRecorder::RecordUse(CUdeviceptr address, StreamRecord* stream, CUstream live,
                                                              bool is_asked) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  // Where the path without locks is open, the allocator is not closed, the process is not exiting, and this is no forked child.
  const bool is_fast = known_cache.serial == env_.fast_serial();
  if (!is_fast) [[unlikely]] {
    if (const CUresult error = env_.Usable("RecordUse"); error != CUDA_SUCCESS) return error;
  }
  if (stream == nullptr) [[unlikely]]
    return Refuse(CUDA_ERROR_INVALID_VALUE, "RecordUse: an empty StreamRef: Identify makes one");
  if (stream->own_thread && live != CU_STREAM_PER_THREAD) [[unlikely]]
    return Refuse(CUDA_ERROR_INVALID_VALUE, "RecordUse: a thread's default stream is named by CU_STREAM_PER_THREAD, on its thread");
  // What the thread was given last is mostly what it uses; which block the record is now is read below.
  ThreadCache* const cache = is_fast ? known_cache.cache : caches_.Mine();
  Block* block = cache == nullptr ? nullptr : cache->latest.block;
  std::uint64_t state = 0;
  bool is_there = IsAt(block, address, &state);
  if (!is_there) {
    block = env_.map.Find(address);
    if (cache != nullptr) cache->latest.block = block;
    is_there = IsAt(block, address, &state);
  }
  // Of a block that is being freed, against the rules, it may be gone.
  const Arena* arena = nullptr;
  if (is_there && (state & (kStatusMask | kForeign)) == kLive) [[likely]]
    arena = block->arena.load(std::memory_order_relaxed);
  bool own = false;
  if (arena != nullptr) [[likely]] {
    own = stream == arena->stream;
  } else {  // to say what is wrong; or lent to another stream than the arena's
    CUresult error = CUDA_SUCCESS;
    block = Edit(address, "RecordUse", &error);
    if (block == nullptr) return error;
    own = stream == block->stream;
    EndEdit(block, 0);
  }
  if (own) {
    CountUse(cache, &ThreadCache::uses_own, &env_.uses_own);
    return CUDA_SUCCESS;
  }
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  // A stream's own handle is enough for the calls about it and for recording in it, whatever context is current.
  if (!stream->is_default) [[likely]]
    result = RecordNow(block, address, stream, live, is_asked, cache);
  if (result == CUDA_ERROR_INVALID_CONTEXT) [[unlikely]]
    result = RecordInContext(block, address, stream, live, is_asked, cache);
  return result == CUDA_SUCCESS ? result : env_.Note(result);
}

CUresult UseRecorder::RecordUse(CUdeviceptr address, StreamRecord* stream) noexcept {
  return RecordUse(address, stream, stream == nullptr ? nullptr : stream->LiveHandle(), false);
}
CUresult UseRecorder::RecordUse(CUdeviceptr address, StreamRecord* stream, CUstream live) noexcept {
  return RecordUse(address, stream, live, false);
}
CUresult UseRecorder::RecordUseAsked(CUdeviceptr address, StreamRecord* stream, CUstream live) noexcept {
  return RecordUse(address, stream, live, true);
}

}  // namespace cuaudit::alloc
