// SPDX-License-Identifier: MIT
#include "allocator/requests/ladder.h"

#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {

// New memory; and when there is none, what can be done about it, the cheapest first.
CUresult Ladder::Grow(Arena* arena, Request* request, Block** out) noexcept {
  Device* const device = arena->device;
  CUresult error = CUDA_SUCCESS;
  for (const FreeMemoryCallback& callback : free_callbacks_) {
    if (!callback.free_memory(callback.self, device->index, request->size)) continue;
    *out = search_.TakeReady(arena, *request, true, &error);
    if (*out != nullptr || error != CUDA_SUCCESS) return error;
  }
  CUresult result = CUDA_SUCCESS;
  {
    const Held growing(arena->growing);
    if (arena->growths.load(std::memory_order_acquire) != request->growths) {  // another thread was first
      *out = search_.TakeReady(arena, *request, false, &error);
      if (*out != nullptr || error != CUDA_SUCCESS) return error;
    }
    if (env_.options.garbage_collection_threshold > 0.0 && !arena->pool->is_private) {
      const Held releasing(device->releasing);
      cached_.CollectGarbage(device, *request);
    }
    request->may_move = true;
    result = source_.Grow(arena, request, out);
    request->may_move = false;
    std::unique_lock<Lock> releasing(device->releasing, std::defer_lock);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) releasing.lock();  // also for those who have memory in hand to be through
    if (result == CUDA_ERROR_OUT_OF_MEMORY && cached_.ReleaseOversize(arena, *request)) {
      device->retries.fetch_add(1, std::memory_order_relaxed);
      result = source_.Grow(arena, request, out);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      device->retries.fetch_add(1, std::memory_order_relaxed);
      device->syncs.fetch_add(1, std::memory_order_relaxed);
      error = synchronizer_.SyncArena(arena);
      if (error == CUDA_SUCCESS) *out = search_.TakeReady(arena, *request, true, &error);
      if (*out != nullptr || error != CUDA_SUCCESS) return error;
      error = cached_.EmptyDevice(device, 0);
      result = source_.Grow(arena, request, out);
      if (result != CUDA_SUCCESS && error != CUDA_SUCCESS && error != CUDA_ERROR_OUT_OF_MEMORY) return error;
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      error = CUDA_SUCCESS;
      *out = BorrowFromPools(arena, *request, &error);
      if (*out != nullptr || error != CUDA_SUCCESS) return error;
    }
  }
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  return OutOfMemoryOf(arena, *request, source_.SegmentSize(request->size), request->by_limit ? CUDA_SUCCESS : result);
}

// From pools whose owners said so; their blocks go back to them when they are freed.
Block* Ladder::BorrowFromPools(Arena* arena, const Request& request, CUresult* error) noexcept {
  if (arena->pool != &pools_.shared) return nullptr;
  for (Pool* pool = pools_.First(); pool != nullptr; pool = pool->next) {
    if (!pool->options().use_on_oom || pool->users.load(std::memory_order_relaxed) == 0) continue;
    Arena* const lender = arenas_.Of(arena->device, pool, request.stream);
    if (lender == nullptr) continue;
    Block* const block = search_.TakeReady(lender, request, true, error);
    if (*error != CUDA_SUCCESS) return nullptr;
    if (block == nullptr) continue;
    env_.served_shared_pool.fetch_add(1, std::memory_order_relaxed);
    return block;
  }
  return nullptr;
}

CUresult Ladder::OutOfMemoryOf(Arena* arena, const Request& request, std::size_t segment, CUresult driver_result) noexcept {
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
    CurrentContext current(env_.driver, device->context);
    if (current.result() != CUDA_SUCCESS || env_.driver.MemGetInfo(&account.device_free, &account.device_total) != CUDA_SUCCESS)
      account.device_free = account.device_total = 0;
  }
  caches_.FoldAll(device);
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
  if (env_.Traced()) arena->Trace(TraceAction::Oom, account.device_free, segment, request.bytes, request.stack, request.stream->id);
  for (const OomObserver& observer : oom_observers_) observer.on_oom(observer.self, account);
  return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Allocate: %zu bytes on device %d: %zu allocated, %zu reserved, %zu of %zu free, %s",
                request.bytes, device->index, account.allocated, account.reserved, account.device_free, account.device_total,
                driver_result == CUDA_SUCCESS ? "refused by the limit" : "refused by the driver");
}

template <typename Entry>
bool Ladder::List<Entry>::Add(const Entry& entry) noexcept {
  const Held held(lock);
  const std::size_t at = count.load(std::memory_order_relaxed);
  if (at == kMost) return false;
  entries[at] = entry;
  count.store(at + 1, std::memory_order_release);
  return true;
}

CUresult Ladder::AddOomObserver(const OomObserver& observer) noexcept {
  if (const CUresult result = env_.Usable("AddOomObserver"); result != CUDA_SUCCESS) return result;
  if (observer.on_oom != nullptr && oom_observers_.Add(observer)) return CUDA_SUCCESS;
  return Refuse(CUDA_ERROR_INVALID_VALUE, "AddOomObserver: at most 8 observers, each with a function");
}

CUresult Ladder::AddFreeMemoryCallback(const FreeMemoryCallback& callback) noexcept {
  if (const CUresult result = env_.Usable("AddFreeMemoryCallback"); result != CUDA_SUCCESS) return result;
  if (callback.free_memory != nullptr && free_callbacks_.Add(callback)) return CUDA_SUCCESS;
  return Refuse(CUDA_ERROR_INVALID_VALUE, "AddFreeMemoryCallback: at most 8 callbacks, each with a function");
}

}  // namespace cuaudit::alloc
