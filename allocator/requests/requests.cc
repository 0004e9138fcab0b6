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
  if (cache != nullptr) cache->Heed();
  const std::uint64_t noted = streams_.captures_noted();
  Pool* const pool = pools_.RouteOf(device, stream);
  if ((error = LookAtCapture(pool, &request)) != CUDA_SUCCESS) return env_.Note(error);
  stream = request.stream;
  Arena* const arena = arenas_.Of(device, pool, stream);
  if (arena == nullptr) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Allocate: no host memory");
  if (request.may_be_fast && pool == &pools_.shared) streams_.EnterFastPath(stream, arena, noted);
  request.growths = arena->growths.load(std::memory_order_acquire);

  Counters* const counters = cache == nullptr ? nullptr : cache->CountersOf(device->index);
  Magazine* const magazine = counters == nullptr || env_.Traced() ? nullptr : cache->FindOrMake(arena->index);
  if (magazine != nullptr) magazine->NoteAsked(env_.options.capture_check_interval);
  Block* block = nullptr;
  if (magazine != nullptr && !magazine->is_passed_by() && request.size < (std::size_t{1} << 40)) {
    block = magazine->Take(static_cast<std::uint32_t>(request.size / kMinBlock));
    if (block == nullptr) {
      magazine->EmptyOwn([arena](Block* kept) { arena->Return(kept); });
      magazine->NoteEmptied();
      if (magazine->is_passed_by()) cache->TurnToNone();
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
  const bool is_legacy = stream->is_default && !stream->own_thread;
  if (is_legacy && stream->device->retained) return CUDA_SUCCESS;  // a primary context's is never captured
  CUstream live = is_legacy ? nullptr : request->live;
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
  if (is_legacy && result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return CUDA_SUCCESS;  // another stream is captured
  if (result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
    request->may_be_fast = false;  // a use of the block is told so, not its allocation
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
