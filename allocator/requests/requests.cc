// SPDX-License-Identifier: MIT
#include "allocator/requests/requests.h"

#include <thread>

#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {
CUresult Requests::Serve(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept {
  CUresult error = env_.Usable("Allocate");
  if (error != CUDA_SUCCESS) return error;
  if (bytes == 0) return CUDA_SUCCESS;
  if (bytes > kTooLarge) return Refuse(CUDA_ERROR_INVALID_VALUE, "Allocate: %zu bytes: at most 2^60 are possible", bytes);
  if (stream == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "Allocate: an empty StreamRef: Identify makes one");
  if (stream->device == nullptr) return Refuse(CUDA_ERROR_INVALID_CONTEXT, "Allocate: the stream's context is none of the allocator's");
  Device* const device = stream->device;

  Request request;
  request.bytes = bytes;
  request.size = env_.Round(bytes);
  request.large = request.size > kSmallLimit;
  request.stream = stream;
  request.live = live;
  request.can_touch = !stream->own_thread || live == CU_STREAM_PER_THREAD;
  request.stack = env_.CaptureStack();
  ThreadCache* const cache = caches_.Mine();
  const std::uint64_t noted = streams_.captures_noted();
  Pool* const pool = pools_.RouteOf(device, stream);
  if ((error = LookAtCapture(pool, &request)) != CUDA_SUCCESS) return env_.Note(error);
  stream = request.stream;
  Arena* const arena = arenas_.Of(device, pool, stream);
  if (arena == nullptr) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Allocate: no host memory");
  if (request.may_be_fast && pool == &pools_.shared) streams_.EnterFastPath(stream, arena, noted);
  if (cache != nullptr) cache->latest.asked_ago = 0;
  request.growths = arena->growths.load(std::memory_order_acquire);

  Counters* const counters = cache == nullptr ? nullptr : cache->CountersOf(device->index);
  Magazine* const magazine = counters == nullptr || env_.Traced() ? nullptr : cache->FindOrMake(arena->index);
  Block* block = nullptr;
  if (magazine != nullptr && !magazine->is_passed_by() && request.size < (std::size_t{1} << 40)) {
    block = magazine->Take(static_cast<std::uint32_t>(request.size / kMinBlock));
    if (block == nullptr) {
      magazine->Empty([arena](Block* kept) { arena->Return(kept); });
      magazine->NoteEmptied();
    }
  }
  if (block != nullptr) {
    block->state.store(((block->state.load(std::memory_order_relaxed) & ~kFlagMask) + kOneLife) | kLive, std::memory_order_release);
    block->requested.store(bytes, std::memory_order_relaxed);
    block->given_in = request.capture;
  }
  if (block == nullptr) block = search_.Take(arena, request, &error);
  if (block == nullptr && error == CUDA_SUCCESS) error = ladder_.Grow(arena, &request, &block);
  if (block == nullptr) return env_.Note(error);

  caches_.CountAllocated(device, block, bytes);
  *out = block->address.load(std::memory_order_relaxed);
  if (env_.Traced()) arena->Trace(TraceAction::Alloc, *out, block->size, bytes, request.stack, stream->id);
  return CUDA_SUCCESS;
}

// Asked each time: nothing else tells whether a capture has begun or ended. The request is then for what the stream is there.
CUresult Requests::LookAtCapture(const Pool* pool, Request* request) noexcept {
  StreamRecord* const stream = request->stream;
  request->may_be_fast = stream->scope == Scope::Stream;
  if (stream->is_default && !stream->own_thread) return CUDA_SUCCESS;  // the legacy stream is never captured
  CUstream live = request->live;
  if (!request->can_touch) {  // a thread's default stream, of which only that thread can ask
    if (stream->thread != std::this_thread::get_id()) return CUDA_SUCCESS;
    live = CU_STREAM_PER_THREAD;
  }
  CaptureView view;
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  if (!stream->is_default) result = streams_.LookAt(stream, live, &view);
  if (result == CUDA_ERROR_INVALID_CONTEXT) {
    CurrentContext current(env_.driver, stream->context, true);
    result = current.result();
    if (result == CUDA_SUCCESS) result = streams_.LookAt(stream, live, &view);
    const CUresult left = current.Leave();
    if (result == CUDA_SUCCESS) result = left;
  }
  if (result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {  // a use of the block is told so, not its allocation
    request->may_be_fast = false;
    return CUDA_SUCCESS;
  }
  if (result != CUDA_SUCCESS) return result;
  request->capture = view.id;
  if (view.id != 0) return EnterCapture(pool, live, request);
  if (stream->scope == Scope::Stream) return CUDA_SUCCESS;
  return Refuse(CUDA_ERROR_ILLEGAL_STATE, "Allocate: the StreamRef was made in a capture, and stream %p is in none: Identify it anew",
                static_cast<void*>(live));
}

// Who was not told of the capture before it allocated may have given it what was cached: so that is refused when it is seen.
CUresult Requests::EnterCapture(const Pool* pool, CUstream live, Request* request) noexcept {
  StreamRecord* const stream = request->stream;
  request->may_be_fast = false;
  const Scope scope = pool->is_private ? Scope::Pool : Scope::Capture;
  const std::uint64_t scope_id = pool->is_private ? pool->id().second : request->capture;
  if (stream->scope == scope && stream->scope_id == scope_id) return CUDA_SUCCESS;
  StreamRecord* inside = streams_.FindCaptured(live, stream->context, scope, scope_id);
  if (inside == nullptr && stream->device->routed.load(std::memory_order_acquire) == 0)
    return Refuse(CUDA_ERROR_ILLEGAL_STATE,
                  "Allocate: stream %p is being captured, and the allocator was not told: BeginAllocateToPool before the capture, or "
                  "Identify in it before it allocates",
                  static_cast<void*>(live));
  const CUresult result = inside != nullptr ? CUDA_SUCCESS : streams_.MakeCaptured(live, stream->context, scope, scope_id, &inside);
  if (result != CUDA_SUCCESS) return result;
  inside->capture.store(request->capture, std::memory_order_release);
  request->stream = inside;
  request->live = live;
  request->can_touch = true;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::alloc
