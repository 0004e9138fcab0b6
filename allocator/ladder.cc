// SPDX-License-Identifier: MIT
#include <limits>

#include "allocator/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kNothing = 0;

}  // namespace

CUresult Core::GrowOnce(Arena* arena, Request* request, Block** out) noexcept {
  request->by_limit = request->no_room = false;
  const bool expandable = options.expandable_segments && arena->device->granularity != 0 && arena->pool->options().acquire == nullptr;
  if (!expandable) return AddSegment(arena, request, out);
  const CUresult result = Extend(arena, request, out);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || request->by_limit) return result;
  const Segment* const range = arena->expandable[Index(request->large)];
  if (range != nullptr && (!request->no_room || range->size >= arena->device->total)) return result;
  // No address space was left for a range, or for one that can hold all of the device's memory: that need not be all in use.
  arena->device->fallbacks.fetch_add(1, std::memory_order_relaxed);
  return AddSegment(arena, request, out);
}

// New memory; and when there is none, what can be done about it, the cheapest first.
CUresult Core::Grow(Arena* arena, Request* request, Block** out) noexcept {
  Device* const device = arena->device;
  CUresult error = CUDA_SUCCESS;
  const std::size_t callbacks = free_callback_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < callbacks; ++i) {
    if (!free_callbacks[i].free_memory(free_callbacks[i].self, device->index, request->size)) continue;
    *out = TakeReady(arena, *request, true, &error);
    if (*out != nullptr || error != CUDA_SUCCESS) return error;
  }
  CUresult result = CUDA_SUCCESS;
  {
    const Held growing(arena->growing);
    if (arena->growths.load(std::memory_order_acquire) != request->growths) {  // another thread was first
      *out = TakeReady(arena, *request, false, &error);
      if (*out != nullptr || error != CUDA_SUCCESS) return error;
    }
    if (options.garbage_collection_threshold > 0.0 && !arena->pool->is_private) {
      const Held releasing(device->releasing);
      CollectGarbage(device, *request);
    }
    result = GrowOnce(arena, request, out);
    std::unique_lock<Lock> releasing(device->releasing, std::defer_lock);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) releasing.lock();  // also for those who have memory in hand to be through
    if (result == CUDA_ERROR_OUT_OF_MEMORY && ReleaseOversize(arena, *request)) {
      device->retries.fetch_add(1, std::memory_order_relaxed);
      result = GrowOnce(arena, request, out);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      device->retries.fetch_add(1, std::memory_order_relaxed);
      device->syncs.fetch_add(1, std::memory_order_relaxed);
      error = SyncArena(arena);
      if (error == CUDA_SUCCESS) *out = TakeReady(arena, *request, true, &error);
      if (*out != nullptr || error != CUDA_SUCCESS) return error;
      error = EmptyDevice(device, kNothing);
      result = GrowOnce(arena, request, out);
      if (result != CUDA_SUCCESS && error != CUDA_SUCCESS && error != CUDA_ERROR_OUT_OF_MEMORY) return error;
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      error = CUDA_SUCCESS;
      *out = BorrowFromPools(arena, *request, &error);
      if (*out != nullptr || error != CUDA_SUCCESS) return error;
    }
  }
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  return OutOfMemoryOf(arena, *request, SegmentSize(arena, request->size), request->by_limit ? CUDA_SUCCESS : result);
}

// From pools whose owners said so; their blocks go back to them when they are freed.
Block* Core::BorrowFromPools(Arena* arena, const Request& request, CUresult* error) noexcept {
  if (arena->pool != &pools.shared) return nullptr;
  for (Pool* pool = pools.First(); pool != nullptr; pool = pool->next) {
    if (!pool->options().use_on_oom || pool->users.load(std::memory_order_relaxed) == 0) continue;
    Arena* const lender = arenas.Of(arena->device, pool, request.stream);
    if (lender == nullptr) continue;
    Block* const block = TakeReady(lender, request, true, error);
    if (*error != CUDA_SUCCESS) return nullptr;
    if (block == nullptr) continue;
    served_shared_pool.fetch_add(1, std::memory_order_relaxed);
    return block;
  }
  return nullptr;
}

CUresult Core::OutOfMemoryOf(Arena* arena, const Request& request, std::size_t segment, CUresult driver_result) noexcept {
  Device* const device = arena->device;
  device->ooms.fetch_add(1, std::memory_order_relaxed);
  OutOfMemory account;
  account.device = device->index;
  account.requested = request.bytes;
  account.rounded = segment;
  account.stream = request.stream->id;
  account.pool = arena->pool->id();
  account.driver_result = driver_result;
  account.limit = device->limit.load(std::memory_order_relaxed);
  {
    CurrentContext current(driver, device->context);
    if (current.result() != CUDA_SUCCESS || driver.MemGetInfo(&account.device_free, &account.device_total) != CUDA_SUCCESS)
      account.device_free = account.device_total = 0;
  }
  caches.FoldAll(device);
  {
    const Held held(device->totals.lock);
    account.allocated = static_cast<std::size_t>(device->totals.current[kBytes][0]);
    account.reserved = static_cast<std::size_t>(device->totals.reserved[0].current);
    account.pending = static_cast<std::size_t>(device->totals.pending[1][0].current);
  }
  {
    const Held held(arena->lock);
    for (const FreeBins* set : {&arena->ready[Index(request.large)], &arena->pending[Index(request.large)]}) {
      const Block* const largest = set->Last();
      if (largest != nullptr && largest->size > account.largest_free) account.largest_free = largest->size;
    }
  }
  LastAccount() = account;
  if (Traced()) arena->Trace(TraceAction::Oom, account.device_free, segment, request.bytes, request.stack, request.stream->id);
  const std::size_t observers = oom_observer_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < observers; ++i) oom_observers[i].on_oom(oom_observers[i].self, account);
  return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Allocate: %zu bytes on device %d: %zu allocated, %zu reserved, %zu of %zu free, %s",
                request.bytes, device->index, account.allocated, account.reserved, account.device_free, account.device_total,
                driver_result == CUDA_SUCCESS ? "refused by the limit" : "refused by the driver");
}

}  // namespace cuaudit::alloc
