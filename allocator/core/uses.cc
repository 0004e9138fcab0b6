// SPDX-License-Identifier: MIT
#include <memory>
#include <new>
#include <utility>

#include "allocator/core/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {
namespace {

void* Shown(CUdeviceptr address) noexcept { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

// What the stream was given until now is over when its next recording is.
void Owe(Block* block, StreamRecord* stream) noexcept {
  const std::uint64_t sequence = stream->NextSequence();
  (void)block->uses.Add(stream, sequence);
  block->noted.store(true, std::memory_order_relaxed);
  stream->Want(sequence);
}

// The block was given to what the stream is in this capture, and is told of by what the stream is outside.
bool IsOwner(const Block* block, const StreamRecord* stream, std::uint64_t capture) noexcept {
  const StreamRecord* const owner = block->stream;
  return block->given_in == capture && owner->scope != Scope::Stream && owner->handle == stream->handle && !owner->own_thread;
}

// A block that the capture was not given may have been used by the stream before it, and there only its next recording tells of that.
bool OweEager(Block* block, StreamRecord* stream, std::uint64_t capture) noexcept {
  if (block->given_in == capture) return true;
  if (StreamRecord* const same = stream->same.load(std::memory_order_acquire); same != nullptr) stream = same;
  const std::uint64_t sequence = stream->NextSequence();
  std::uint64_t before = 0;
  if (!block->uses.Add(stream, sequence, RoomBeyond(block), &before)) return false;
  block->noted.store(true, std::memory_order_relaxed);
  stream->Want(sequence);
  return true;
}

}  // namespace

Block* UseRecorder::Edit(CUdeviceptr address, const char* call, CUresult* error) noexcept {
  Block* const block = env_.map.Find(address);
  if (block == nullptr || block->address.load(std::memory_order_relaxed) != address) [[unlikely]] {
    env_.foreign_pointers.fetch_add(1, std::memory_order_relaxed);
    *error = Refuse(CUDA_ERROR_INVALID_VALUE, "%s: %p: no block of this allocator begins there", call, Shown(address));
    return nullptr;
  }
  return EditFound(block, address, call, error);
}

Block* UseRecorder::EditFound(Block* block, CUdeviceptr address, const char* call, CUresult* error) noexcept {
  std::uint64_t state = block->state.load(std::memory_order_acquire);
  for (Waiter waiter;;) {
    if ((state & kStatusMask) != kLive) [[unlikely]] {
      *error = Refuse(CUDA_ERROR_INVALID_VALUE, "%s: %p: the block has been freed", call, Shown(address));
      return nullptr;
    }
    if ((state & kEditing) != 0) [[unlikely]] {
      waiter.Pause();
      state = block->state.load(std::memory_order_acquire);
    } else if (block->state.compare_exchange_weak(state, state | kEditing, std::memory_order_acq_rel, std::memory_order_acquire)) {
      break;
    }
  }
  if (block->address.load(std::memory_order_relaxed) != address) [[unlikely]] {  // the record is another block's by now
    EndEdit(block, 0);
    *error = Refuse(CUDA_ERROR_INVALID_VALUE, "%s: %p: the block has been freed", call, Shown(address));
    return nullptr;
  }
  *error = CUDA_SUCCESS;
  return block;
}

void UseRecorder::EndEdit(Block* block, std::uint64_t flags) noexcept {
  block->state.store((block->state.load(std::memory_order_relaxed) & ~kEditing) | flags, std::memory_order_release);
}

[[gnu::noinline]] CUresult UseRecorder::Free(CUdeviceptr address) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  if (env_.Forked())
    return Refuse(CUDA_ERROR_NOT_INITIALIZED, "Free: in a forked child: memory of the parent's allocator is not the child's");
  if (env_.closed.load(std::memory_order_relaxed)) return Refuse(CUDA_ERROR_ILLEGAL_STATE, "Free: the allocator is closed");
  Block* const block = env_.map.Find(address);
  if (block == nullptr || block->address.load(std::memory_order_relaxed) != address) {
    env_.foreign_pointers.fetch_add(1, std::memory_order_relaxed);
    return Refuse(CUDA_ERROR_INVALID_VALUE, "Free: %p: no block of this allocator begins there", Shown(address));
  }
  std::uint64_t state = block->state.load(std::memory_order_acquire);
  for (Waiter waiter;;) {
    if ((state & kStatusMask) != kLive) {
      env_.double_frees.fetch_add(1, std::memory_order_relaxed);
      return Refuse(CUDA_ERROR_INVALID_VALUE, "Free: %p: the block has been freed already", Shown(address));
    }
    if ((state & kEditing) != 0) {  // a use is being added by a call that should have come first
      waiter.Pause();
      state = block->state.load(std::memory_order_acquire);
    } else if (block->state.compare_exchange_weak(state, (state & ~kStatusMask) | kReturned, std::memory_order_acq_rel,
                                                  std::memory_order_acquire)) {
      break;
    }
  }
  Arena* const arena = block->arena;
  if (env_.Traced())
    arena->Trace(TraceAction::FreeRequested, address, block->size, block->requested.load(std::memory_order_relaxed), env_.CaptureStack(),
                 block->stream->id);
  caches_.CountFreed(arena->device, block, block->requested.load(std::memory_order_relaxed));
  CUresult first = CUDA_SUCCESS;
  for (const Use& use : block->recorded.entries()) {
    CUresult result = env_.exiting.load(std::memory_order_relaxed) ? CUDA_ERROR_DEINITIALIZED : RecordFor(block, use.stream);
    if (result == CUDA_SUCCESS) continue;
    // Then it is told by whatever the stream records next, or by synchronising everything.
    Owe(block, use.stream);
    if (result == CUDA_ERROR_INVALID_HANDLE)
      result = Refuse(result,
                      "Free: %p: the handle of a stream of RecordStream is not that stream's any more: streams live until Free, or "
                      "RetireStream",
                      Shown(address));
    if (first == CUDA_SUCCESS) first = env_.Note(result);
  }
  block->recorded.Clear();
  if ((state & kForeign) != 0) Owe(block, block->stream);
  ThreadCache* const cache = caches_.Mine();
  if (cache != nullptr) cache->Heed();
  Magazine* const magazine = cache == nullptr || env_.Traced() ? nullptr : cache->Find(arena->index);
  if (magazine != nullptr && !magazine->is_passed_by() && (state & kFlagMask) == kLive && !block->used.load(std::memory_order_relaxed)) {
    block->state.store((state & ~kFlagMask) | kCached, std::memory_order_release);
    if (magazine->Put(block, env_.cache_bytes)) return first;
  }
  arena->Return(block);
  return first;
}

// RecordStream's promise is due: what the stream was given until now.
CUresult UseRecorder::RecordFor(Block* block, StreamRecord* stream) noexcept {
  StreamRecord* const as = stream->retired_as.load(std::memory_order_acquire);
  if (as != nullptr || stream->retired.load(std::memory_order_acquire)) {  // it was due then, and the stream may be gone
    Owe(block, as != nullptr ? as : stream);
    return CUDA_SUCCESS;
  }
  if (stream->own_thread) {
    // The handle means this thread's stream, which need not be the one that was named.
    StreamRef here;
    const CUresult result =
        stream->device == nullptr ? CUDA_ERROR_INVALID_CONTEXT : identities_.Identify(stream->device->index, CU_STREAM_PER_THREAD, &here);
    if (result != CUDA_SUCCESS || here.record() != stream) return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_CONTEXT : result;
  }
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  if (!stream->is_default) result = RecordAtFree(block, stream);
  if (result != CUDA_ERROR_INVALID_CONTEXT) return result;
  CurrentContext current(env_.driver, stream->context, !stream->is_default);
  if (current.result() != CUDA_SUCCESS) return current.result();
  if (!stream->is_default && !current.has_pushed()) return result;
  result = RecordAtFree(block, stream);
  const CUresult left = current.Leave();
  return result != CUDA_SUCCESS ? result : left;
}

CUresult UseRecorder::RecordAtFree(Block* block, StreamRecord* stream) noexcept {
  CaptureView view;
  CUresult result = streams_.LookAt(stream, stream->handle, &view);
  if (result != CUDA_SUCCESS) return result;
  if (view.id != 0) {
    if (IsOwner(block, stream, view.id)) return CUDA_SUCCESS;
    Pool* const routed = stream->device == nullptr ? &pools_.shared : pools_.RouteOf(stream->device, stream);
    CapturedUse* const use = new (std::nothrow) CapturedUse;
    Capture* const capture = use == nullptr ? nullptr : streams_.captures.FindOrMake(view.id);
    if (capture == nullptr) {
      delete use;
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    use->stream = stream;
    use->capture = capture;
    use->nodes = std::move(view.last);
    if (!OweEager(block, stream, view.id)) {
      delete use;
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    use->next = block->captured;
    block->captured = use;
    block->noted.store(true, std::memory_order_relaxed);
    pools_.NoteCapture(routed, capture);
    env_.uses_captured.fetch_add(1, std::memory_order_relaxed);
    return CUDA_SUCCESS;
  }
  StreamRecord* const named = stream;
  if (!named->is_default && (result = FindNamed(named, &stream)) != CUDA_SUCCESS) return result;
  if (stream == nullptr) {
    Owe(block, named);
    return CUDA_SUCCESS;
  }
  std::uint64_t sequence = 0;
  result = stream->Record(env_.driver, named->handle, &sequence);
  if (result != CUDA_SUCCESS) return result;
  (void)block->uses.Add(stream, sequence);
  block->noted.store(true, std::memory_order_relaxed);
  if (env_.Traced())
    block->arena.load(std::memory_order_relaxed)
        ->Trace(TraceAction::UseRecorded, block->address.load(std::memory_order_relaxed), block->size, 0, nullptr, stream->id, 0, sequence);
  return CUDA_SUCCESS;
}

// The stream that was named, as it is outside captures; INVALID_HANDLE if its handle is another's. What was named in a capture is known
// only if it had been known before: else nobody can say whose handle it is now (nullptr).
CUresult UseRecorder::FindNamed(StreamRecord* named, StreamRecord** out) noexcept {
  *out = nullptr;
  unsigned long long id = 0;
  const CUresult result = env_.driver.StreamGetId(named->handle, &id);
  if (result != CUDA_SUCCESS) return result;
  StreamRecord* const known = streams_.Find(id);
  if (named->scope == Scope::Stream && known != named) return CUDA_ERROR_INVALID_HANDLE;
  if (known != nullptr && known->handle == named->handle && known->index <= named->index) *out = known;
  return CUDA_SUCCESS;
}

CUresult UseRecorder::RecordStream(CUdeviceptr address, StreamRecord* stream) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  CUresult error = env_.Usable("RecordStream");
  if (error != CUDA_SUCCESS) return error;
  if (stream == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "RecordStream: an empty StreamRef: Identify makes one");
  if (stream->retired.load(std::memory_order_acquire))
    return Refuse(CUDA_ERROR_ILLEGAL_STATE, "RecordStream: the stream has been retired: RecordUse tells of its uses");
  Block* const block = Edit(address, "RecordStream", &error);
  if (block == nullptr) return error;
  const bool own = stream == block->stream;
  const bool done = own || (block->uses.Reserve(block->uses.size() + 1 + RoomBeyond(block)) && block->recorded.Add(stream, 0));
  if (!own && done) block->noted.store(true, std::memory_order_relaxed);
  EndEdit(block, own || !done ? 0 : kHasStreams);
  return done ? CUDA_SUCCESS : Refuse(CUDA_ERROR_OUT_OF_MEMORY, "RecordStream: no host memory");
}

CUresult UseRecorder::KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  CUresult error = env_.Usable("KeepAliveUntil");
  if (error != CUDA_SUCCESS) return error;
  Block* const block = Edit(address, "KeepAliveUntil", &error);
  if (block == nullptr) return error;
  Device* const device = block->arena.load(std::memory_order_relaxed)->device;
  const bool room = block->uses.Reserve(block->uses.size() + 1 + RoomBeyond(block));
  EndEdit(block, 0);
  if (!room) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "KeepAliveUntil: no host memory");
  CurrentContext current(env_.driver, device->context);
  CUresult result = current.result();
  StreamRecord* keeper = nullptr;
  CaptureView view;
  std::uint64_t sequence = 0;
  if (result == CUDA_SUCCESS) result = keepers_.Wait(device, event, &keeper, &view, &sequence);
  if (result == CUDA_SUCCESS && view.id != 0) {
    result = RecordCaptured(address, "KeepAliveUntil", keeper, view, false);
  } else if (result == CUDA_SUCCESS) {
    std::uint64_t before = 0;
    if (EditFound(block, address, "KeepAliveUntil", &result) != nullptr)
      result = AttachUse(block, "KeepAliveUntil", keeper, sequence, &before);
    if (before != 0) CountUse(caches_.Mine(), &ThreadCache::uses_merged, &env_.uses_merged);
    if (result == CUDA_SUCCESS && env_.Traced()) TraceUse(address, keeper, sequence);
  }
  const CUresult left = current.Leave();
  return env_.Note(result != CUDA_SUCCESS ? result : left);
}

// A use by captured work: known only to the graph. The stream's later end in the same capture stands for the earlier one. `may_owe`: what
// the stream did before the capture may be a use, too.
CUresult UseRecorder::RecordCaptured(CUdeviceptr address, const char* call, StreamRecord* stream, const CaptureView& view,
                                     bool may_owe) noexcept {
  std::unique_ptr<CapturedUse> use(new (std::nothrow) CapturedUse);
  Capture* const capture = use == nullptr ? nullptr : streams_.captures.FindOrMake(view.id);
  if (capture == nullptr) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s: no host memory", call);
  use->stream = stream;
  use->capture = capture;
  try {
    use->nodes = view.last;
  } catch (...) {
    return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s: no host memory", call);
  }
  Pool* const routed = stream->device == nullptr ? &pools_.shared : pools_.RouteOf(stream->device, stream);
  CUresult error = CUDA_SUCCESS;
  Block* const block = Edit(address, call, &error);
  if (block == nullptr) return error;
  if (IsOwner(block, stream, view.id)) {
    EndEdit(block, 0);
    CountUse(caches_.Mine(), &ThreadCache::uses_own, &env_.uses_own);
    return CUDA_SUCCESS;
  }
  if (may_owe && !OweEager(block, stream, view.id)) {
    EndEdit(block, 0);
    return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s: no host memory", call);
  }
  DropEnded(block);  // a block that lives through many captures
  CapturedUse* same = block->captured;
  while (same != nullptr && (same->stream != stream || same->capture != capture)) same = same->next;
  if (same != nullptr) {
    same->nodes.swap(use->nodes);
    env_.uses_merged.fetch_add(1, std::memory_order_relaxed);
  } else {
    use->next = block->captured;
    block->captured = use.release();
    block->noted.store(true, std::memory_order_relaxed);
  }
  pools_.NoteCapture(routed, capture);
  env_.uses_captured.fetch_add(1, std::memory_order_relaxed);
  if (env_.Traced())
    block->arena.load(std::memory_order_relaxed)->Trace(TraceAction::UseRecorded, address, block->size, 0, nullptr, stream->id, 0, view.id);
  EndEdit(block, kHasUses);
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::alloc
