// SPDX-License-Identifier: MIT
// What an allocation for a stream in a capture is served from.
#include <thread>

#include "allocator/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {

// Asked each time: nothing else tells whether a capture has begun or ended. The request is then for what the stream is there.
CUresult Core::LookAtCapture(const Pool* pool, Request* request) noexcept {
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
  if (!stream->is_default) result = streams.LookAt(stream, live, &view);
  if (result == CUDA_ERROR_INVALID_CONTEXT) {
    CurrentContext current(driver, stream->context, true);
    result = current.result();
    if (result == CUDA_SUCCESS) result = streams.LookAt(stream, live, &view);
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
CUresult Core::EnterCapture(const Pool* pool, CUstream live, Request* request) noexcept {
  StreamRecord* const stream = request->stream;
  request->may_be_fast = false;
  const Scope scope = pool->is_private ? Scope::Pool : Scope::Capture;
  const std::uint64_t scope_id = pool->is_private ? pool->id().second : request->capture;
  if (stream->scope == scope && stream->scope_id == scope_id) return CUDA_SUCCESS;
  StreamRecord* inside = streams.FindCaptured(live, stream->context, scope, scope_id);
  if (inside == nullptr && stream->device->routed.load(std::memory_order_acquire) == 0)
    return Refuse(CUDA_ERROR_ILLEGAL_STATE,
                  "Allocate: stream %p is being captured, and the allocator was not told: BeginAllocateToPool before the capture, or "
                  "Identify in it before it allocates",
                  static_cast<void*>(live));
  const CUresult result = inside != nullptr ? CUDA_SUCCESS : streams.MakeCaptured(live, stream->context, scope, scope_id, &inside);
  if (result != CUDA_SUCCESS) return result;
  inside->capture.store(request->capture, std::memory_order_release);
  request->stream = inside;
  request->live = live;
  request->can_touch = true;
  return CUDA_SUCCESS;
}

// In a capture: a block that was used by captured work which the graph orders before what this stream captures next.
Block* Core::TakeCaptured(Arena* arena, const Request& request, CUresult* error) noexcept {
  if (!request.can_touch) return nullptr;
  {
    const Held held(arena->lock);
    bool any = false;
    for (const Block* block = arena->waiting; block != nullptr && !any; block = block->link) any = block->captured != nullptr;
    if (!any) return nullptr;
  }
  CaptureView view;
  CurrentContext current(driver, request.stream->context, true);
  *error = current.result();
  if (*error == CUDA_SUCCESS) *error = streams.LookAt(request.stream, request.live, &view);
  if (*error != CUDA_SUCCESS) return nullptr;
  if (view.id == 0) {  // then what its last capture used may be free by now
    {
      const Held held(arena->lock);
      arena->Resettle(Arena::kEverything);
    }
    return TakeReady(arena, request, false, error);
  }
  if (!options.capture_reuse_by_topology) return nullptr;
  Block* chosen = nullptr;
  {
    const Held held(arena->lock);
    for (Block* block = arena->waiting; block != nullptr; block = block->link) {
      bool fits = block->captured != nullptr && block->uses.empty() && block->large == request.large && block->size >= request.size &&
                  arena->MayServe(block, request) && (chosen == nullptr || block->size < chosen->size);
      for (const CapturedUse* use = block->captured; use != nullptr; use = use->next) fits = fits && use->capture->id == view.id;
      if (fits) chosen = block;
    }
    if (chosen == nullptr) return nullptr;
    arena->Remove(chosen);
  }
  bool ordered = true;
  for (const CapturedUse* use = chosen->captured; use != nullptr && ordered && *error == CUDA_SUCCESS; use = use->next)
    *error = IsOrderedBefore(driver, use->nodes, view.last, &ordered);
  const Held held(arena->lock);
  if (*error != CUDA_SUCCESS || !ordered) {
    arena->Settle(chosen);
    return nullptr;
  }
  DropCaptured(chosen);
  arena->Split(chosen, request.size);
  arena->GiveOut(chosen, request);
  Raise(&arena->served_capture);
  return chosen;
}

}  // namespace cuaudit::alloc
