// SPDX-License-Identifier: MIT
#include <memory>
#include <mutex>
#include <new>

#include "allocator/driver_scope.h"
#include "allocator/errors.h"
#include "allocator/requests/segment_source.h"
#include "allocator/tables/pool_table.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {

std::size_t SegmentSource::SegmentSize(std::size_t size) const noexcept {
  if (size <= kSmallLimit) return kSmallSegment;
  if (size < kMinLargeAlloc) return env_.options.large_segment_size;
  return (size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

CUresult SegmentSource::Grow(Arena* arena, Request* request, Block** out) noexcept {
  request->by_limit = request->no_room = false;
  const bool expandable = env_.options.expandable_segments && arena->device->granularity != 0 && arena->pool->options().acquire == nullptr;
  if (!expandable) return AddSegment(arena, request, out);
  const CUresult result = Extend(arena, request, out);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || request->by_limit) return result;
  const Segment* const range = arena->expandable[Index(request->large)];
  if (range != nullptr && (!request->no_room || range->size >= arena->device->total)) return result;
  // No address space was left for a range, or for one that can hold all of the device's memory: that need not be all in use.
  arena->device->fallbacks.fetch_add(1, std::memory_order_relaxed);
  return AddSegment(arena, request, out);
}

// A segment of its own from the driver, and the request's block out of it.
CUresult SegmentSource::AddSegment(Arena* arena, Request* request, Block** out) noexcept {
  Device* const device = arena->device;
  const std::size_t bytes = SegmentSize(request->size);
  // What needs host memory comes first.
  std::unique_ptr<Segment> segment(new (std::nothrow) Segment);
  Block* const block = segment == nullptr ? nullptr : env_.store.Take();
  if (block == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!device->Reserve(bytes)) {
    request->by_limit = true;
    env_.store.Give(block);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUdeviceptr address = 0;
  CUresult result = CUDA_SUCCESS;
  CUresult left = CUDA_SUCCESS;
  const PoolOptions& pool = arena->pool->options();
  {
    CurrentContext current(env_.driver, device->context);
    RelaxedCapture relaxed(env_.driver);
    result = current.result() != CUDA_SUCCESS ? current.result() : relaxed.result();
    if (result == CUDA_SUCCESS) {
      result = pool.acquire != nullptr ? pool.acquire(pool.user, device->index, bytes, request->live, &address)
                                       : env_.driver.MemAlloc(&address, bytes);
    }
    left = relaxed.Leave();
    const CUresult popped = current.Leave();
    if (left == CUDA_SUCCESS) left = popped;
  }
  if (result != CUDA_SUCCESS) {
    device->Unreserve(bytes);
    env_.store.Give(block);
    return result;
  }
  device->allocs.fetch_add(1, std::memory_order_relaxed);
  const bool mapped = env_.map.Prepare(address, bytes, request->large);
  segment->source = &pool;
  segment->stack = request->stack;
  Segment* const added = segment.release();
  added->Hold(arena, block, address, bytes, request->large);
  device->CountSegments(request->large, 1, static_cast<std::int64_t>(bytes), env_.IsOversize(bytes));
  if (env_.Traced()) arena->Trace(TraceAction::SegmentAlloc, address, bytes, 0, request->stack, arena->stream->id);
  std::unique_lock<Lock> held(arena->lock);
  arena->AddSegment(added);
  ++arena->growths;
  if (!mapped || left != CUDA_SUCCESS) {
    // It cannot be given out, or the caller must hear of its context: then it is a cached segment, or goes back.
    if (mapped) {
      arena->Settle(block);
      return left;
    }
    block->state.store((block->state.load(std::memory_order_relaxed) & ~kFlagMask) | kFree, std::memory_order_relaxed);
    added->unusable = true;
    held.unlock();
    (void)ReleaseSegment(added);  // else Close tries again
    return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Allocate: no host memory for the records of a segment");
  }
  arena->Split(block, request->size);
  arena->GiveOut(block, *request);
  Raise(&arena->served_grown);
  *out = block;
  return CUDA_SUCCESS;
}

// The segment's memory is no more: its records go.
void SegmentSource::ForgetSegment(Segment* segment) noexcept {
  Arena* const arena = segment->arena;
  Device* const device = arena->device;
  {
    const Held held(arena->lock);
    arena->RemoveSegment(segment);
    for (Block* block = segment->first; block != nullptr;) {
      Block* const next = block->next;
      arena->Remove(block);
      DropCaptured(block);
      if (segment->expandable && !segment->unusable && block->mapped) env_.map.Remove(block);
      env_.store.Give(block);
      block = next;
    }
    if (segment->expandable) arena->expandable[Index(segment->large)] = nullptr;
  }
  const bool is_plain = !segment->expandable;
  const std::int64_t bytes = is_plain ? -static_cast<std::int64_t>(segment->size) : 0;
  device->CountSegments(segment->large, -1, bytes, is_plain && env_.IsOversize(segment->size));
  if (is_plain) device->Unreserve(segment->size);
  delete segment;
}

CUresult SegmentSource::ReleaseSegment(Segment* segment) noexcept {
  Arena* const arena = segment->arena;
  Device* const device = arena->device;
  Block* const block = segment->first;
  const PoolOptions& pool = *segment->source;
  // Before the driver may give the address to another thread's segment.
  if (!segment->unusable) {
    const Held held(arena->lock);
    for (Block* one = segment->first; one != nullptr; one = one->next) env_.map.Remove(one);
  }
  CUresult result = CUDA_SUCCESS;
  bool settled = true;  // whoever closes waits whatever that ends
  const bool is_closed = env_.closed.load(std::memory_order_relaxed);
  const auto settle = [&](StreamRecord* stream, std::uint64_t sequence) {
    if (result != CUDA_SUCCESS || !settled) return;
    result = is_closed ? stream->Synchronize(env_.driver, sequence) : synchronizer_.SettleUse(stream, sequence, arena, &settled);
  };
  if (pool.release != nullptr && !segment->unusable) {
    for (Block* one = segment->first; one != nullptr; one = one->next) {
      const bool is_live = (one->state.load(std::memory_order_relaxed) & kStatusMask) == kLive;
      settle(arena->stream, is_live ? arena->stream->NextSequence() : one->own_sequence);
      if (is_live && one->used.load(std::memory_order_relaxed)) ClaimUses(one);
      for (const Use& use : one->uses.entries()) settle(use.stream, use.sequence);
    }
  }
  if (!settled) {
    const Held held(arena->lock);
    arena->Settle(block);
    return CUDA_SUCCESS;
  }
  CUresult left = CUDA_SUCCESS;
  bool gone = false;
  if (result == CUDA_SUCCESS) {
    CurrentContext current(env_.driver, device->context);
    RelaxedCapture relaxed(env_.driver);
    result = current.result() != CUDA_SUCCESS ? current.result() : relaxed.result();
    if (result == CUDA_SUCCESS && pool.release == nullptr) {
      result = FreeOurs(env_.driver, segment->address, &segment->tenure, &gone, [&] { return env_.driver.MemFree(segment->address); });
    } else if (result == CUDA_SUCCESS) {
      result = pool.release(pool.user, device->index, segment->address, segment->size);
      gone = result == CUDA_SUCCESS || driver::IsSticky(result);
    }
    left = relaxed.Leave();
    const CUresult popped = current.Leave();
    if (left == CUDA_SUCCESS) left = popped;
  }
  if (!gone && result != CUDA_SUCCESS && !driver::IsSticky(result)) {
    device->refused.fetch_add(1, std::memory_order_relaxed);
    const Held held(arena->lock);
    const bool is_free = (block->state.load(std::memory_order_relaxed) & kStatusMask) == kFree;
    segment->unusable = segment->unusable || segment->tenure.in_doubt;
    if (!segment->unusable && is_free && block->place == Place::None) arena->Settle(block);
    return env_.Note(result);
  }
  if (env_.Traced()) arena->Trace(TraceAction::SegmentFree, segment->address, segment->size, 0, nullptr, arena->stream->id);
  device->frees.fetch_add(1, std::memory_order_relaxed);
  ForgetSegment(segment);
  return result != CUDA_SUCCESS ? result : left;
}

CUresult SegmentSource::CloseAll(Arena* arena) noexcept {
  CUresult first = CUDA_SUCCESS;
  for (Segment* segment = arena->segments; segment != nullptr;) {
    Segment* const next = segment->next;
    const CUresult result = segment->expandable ? DropRange(segment) : ReleaseSegment(segment);
    if (result != CUDA_SUCCESS && first == CUDA_SUCCESS) first = result;
    segment = next;
  }
  return first;
}

}  // namespace cuaudit::alloc
