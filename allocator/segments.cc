// SPDX-License-Identifier: MIT
#include <new>

#include "allocator/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {

std::size_t Core::SegmentSize(const Arena*, std::size_t size) const noexcept {
  if (size <= kSmallLimit) return kSmallSegment;
  if (size < kMinLargeAlloc) return options.large_segment_size;
  return (size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

// A segment of its own from the driver, and the request's block out of it.
CUresult Core::AddSegment(Arena* arena, Request* request, Block** out) noexcept {
  Device* const device = arena->device;
  const std::size_t bytes = SegmentSize(arena, request->size);
  // What needs host memory comes first.
  std::unique_ptr<Segment> segment(new (std::nothrow) Segment);
  Block* const block = segment == nullptr ? nullptr : store.Take();
  if (block == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!device->Reserve(bytes)) {
    request->by_limit = true;
    store.Give(block);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUdeviceptr address = 0;
  CUresult result = CUDA_SUCCESS;
  CUresult left = CUDA_SUCCESS;
  const PoolOptions& pool = arena->pool->options();
  {
    CurrentContext current(driver, device->context);
    RelaxedCapture relaxed(driver);
    result = current.result() != CUDA_SUCCESS ? current.result() : relaxed.result();
    if (result == CUDA_SUCCESS) {
      result = pool.acquire != nullptr ? pool.acquire(pool.user, device->index, bytes, request->live, &address)
                                       : driver.MemAlloc(&address, bytes);
    }
    left = relaxed.Leave();
    const CUresult popped = current.Leave();
    if (left == CUDA_SUCCESS) left = popped;
  }
  if (result != CUDA_SUCCESS) {
    device->Unreserve(bytes);
    store.Give(block);
    return result;
  }
  device->allocs.fetch_add(1, std::memory_order_relaxed);
  const bool mapped = map.Prepare(address, bytes, request->large);
  segment->address = address;
  segment->size = bytes;
  segment->arena = arena;
  segment->source = &pool;
  segment->large = request->large;
  segment->stack = request->stack;
  segment->first = block;
  block->address.store(address, std::memory_order_relaxed);
  block->size = bytes;
  block->large = request->large;
  block->arena = arena;
  block->segment = segment.get();
  {
    const Held held(device->totals.lock);
    AddTo(device->totals.segment, request->large, 1);
    AddTo(device->totals.reserved, request->large, static_cast<std::int64_t>(bytes));
    if (options.max_split_size != 0 && bytes >= options.max_split_size) AddTo(&device->totals.oversize_segments, 1);
  }
  if (Traced()) arena->Trace(TraceAction::SegmentAlloc, address, bytes, 0, request->stack, arena->stream->id);
  Segment* const added = segment.release();
  std::unique_lock<Lock> held(arena->lock);
  added->next = arena->segments;
  if (arena->segments != nullptr) arena->segments->back = added;
  arena->segments = added;
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
void Core::ForgetSegment(Segment* segment) noexcept {
  Arena* const arena = segment->arena;
  Device* const device = arena->device;
  {
    const Held held(arena->lock);
    (segment->back == nullptr ? arena->segments : segment->back->next) = segment->next;
    if (segment->next != nullptr) segment->next->back = segment->back;
    for (Block* block = segment->first; block != nullptr;) {
      Block* const next = block->next;
      arena->Remove(block);
      DropCaptured(block);
      if (segment->expandable && !segment->unusable && block->mapped) map.Remove(block);
      store.Give(block);
      block = next;
    }
    if (segment->expandable) arena->expandable[Index(segment->large)] = nullptr;
  }
  {
    const Held held(device->totals.lock);
    AddTo(device->totals.segment, segment->large, -1);
    if (!segment->expandable) {
      AddTo(device->totals.reserved, segment->large, -static_cast<std::int64_t>(segment->size));
      if (options.max_split_size != 0 && segment->size >= options.max_split_size) AddTo(&device->totals.oversize_segments, -1);
    }
  }
  if (!segment->expandable) device->Unreserve(segment->size);
  std::free(segment->handles);
  std::free(segment->pages);
  delete segment;
}

// Of one whole block in nobody's set; or, when the allocator closes, of whatever is in it.
CUresult Core::ReleaseSegment(Segment* segment) noexcept {
  Arena* const arena = segment->arena;
  Device* const device = arena->device;
  Block* const block = segment->first;
  const PoolOptions& pool = *segment->source;
  // Before the driver may give the address to another thread's segment.
  if (!segment->unusable) {
    const Held held(arena->lock);
    for (Block* one = segment->first; one != nullptr; one = one->next) map.Remove(one);
  }
  CUresult result = CUDA_SUCCESS;
  if (pool.release != nullptr && !segment->unusable) {
    for (Block* one = segment->first; one != nullptr && result == CUDA_SUCCESS; one = one->next) {
      const bool is_live = (one->state.load(std::memory_order_relaxed) & kStatusMask) == kLive;
      result = arena->stream->Synchronize(driver, is_live ? arena->stream->NextSequence() : one->own_sequence);
      if (is_live && one->used.load(std::memory_order_relaxed)) ClaimUses(one);
      for (const Use& use : one->uses.entries()) {
        if (result == CUDA_SUCCESS) result = use.stream->Synchronize(driver, use.sequence);
      }
    }
  }
  CUresult left = CUDA_SUCCESS;
  bool gone = false;
  if (result == CUDA_SUCCESS) {
    CurrentContext current(driver, device->context);
    RelaxedCapture relaxed(driver);
    result = current.result() != CUDA_SUCCESS ? current.result() : relaxed.result();
    if (result == CUDA_SUCCESS && pool.release == nullptr) {
      result = FreeOurs(driver, segment->address, &segment->tenure, &gone, [&] { return driver.MemFree(segment->address); });
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
    return Note(result);
  }
  if (Traced()) arena->Trace(TraceAction::SegmentFree, segment->address, segment->size, 0, nullptr, arena->stream->id);
  device->frees.fetch_add(1, std::memory_order_relaxed);
  ForgetSegment(segment);
  return result != CUDA_SUCCESS ? result : left;
}

}  // namespace cuaudit::alloc
