// SPDX-License-Identifier: MIT
#include "allocator/core/core.h"
#include "allocator/driver_scope.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kMostFast = std::size_t{1} << 40;

// A cached block begins another life.
void Revive(Block* block, std::size_t bytes) noexcept {
  const std::uint64_t life = (block->state.load(std::memory_order_relaxed) & ~kFlagMask) + kOneLife;
  block->requested.store(bytes, std::memory_order_relaxed);
  block->state.store(life | kLive, std::memory_order_release);
}

}  // namespace

// As Serve would, from what is free for certain, where no uses are to be looked at first. nullptr: Serve has to.
[[gnu::noinline]] Block* Core::TakeDirectly(Arena* arena, std::size_t bytes, StreamRecord* stream) noexcept {
  if (!environment.serves_directly || stream->IsStampDue()) return nullptr;
  const std::size_t size = (bytes + kMinBlock - 1) / kMinBlock * kMinBlock;
  const Held held(arena->lock);
  return arena->CutBestFit(bytes, size, stream);
}

// Nobody waits in Free for another thread's search: then it is left for whoever searches next.
[[gnu::noinline]] void Core::FreeDirectly(Arena* arena, Block* block) noexcept {
  if (!arena->lock.try_lock()) return arena->Return(block);
  arena->TakeBack(block, arena->stream->NextSequence());
  arena->lock.unlock();
}

// False: neither from what this thread has cached nor, after some misses, from what is free for certain.
[[gnu::always_inline]] inline bool Core::TakeCached(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept {
  const std::uint64_t mine = *environment.serial_at;
  const KnownCache& known = known_caches[mine % kKnownCaches];
  if (bytes - 1 >= kMostFast || known.serial != mine || environment.detours.load(std::memory_order_relaxed) != 0 || stream == nullptr)
      [[unlikely]]
    return false;
  ThreadCache::Latest& latest = known.cache->latest;
  Arena* const arena = stream->fast_arena.load(std::memory_order_acquire);
  if (arena != latest.arena && !Turn(known.cache, arena)) [[unlikely]]
    return false;
  if (latest.magazine == nullptr || ++latest.asked_ago >= environment.check_interval) [[unlikely]]
    return false;
  const std::uint32_t key = static_cast<std::uint32_t>((bytes + kMinBlock - 1) / kMinBlock);
  Magazine& magazine = *latest.magazine;
  Block* block = nullptr;
  if (magazine.is_passed_by()) {
    magazine.NoteRequest(key);
    block = TakeDirectly(arena, bytes, stream);
    if (block == nullptr) [[unlikely]]
      return false;
  } else {
    block = magazine.Take(key);
    if (block == nullptr) [[unlikely]]
      return false;
    Revive(block, bytes);
  }
  latest.counters->Allocated(block->large, block->size, bytes);
  latest.block = block;
  *out = block->address.load(std::memory_order_relaxed);
  return true;
}

inline StreamRecord* Core::Remembered(int device, CUstream stream) noexcept {
  const std::uint64_t mine = *environment.serial_at;
  const KnownCache& known = known_caches[mine % kKnownCaches];
  if (known.serial != mine || environment.detours.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return nullptr;
  ThreadCache::Named& named = known.cache->NamedAt(stream);
  if (named.left == 0 || named.handle != stream || named.device != device || named.record->retired.load(std::memory_order_relaxed))
    return nullptr;
  --named.left;
  return named.record;
}

// What a handle is in a capture is asked each time: nothing but the driver tells when that is over.
void Core::Remember(int device, CUstream stream, StreamRecord* record) noexcept {
  if (environment.options.handle_check_interval == 1 || record->scope != Scope::Stream || record->device == nullptr) return;
  ThreadCache* const cache = record->device->index == device ? caches.Mine() : nullptr;
  if (cache != nullptr) cache->NamedAt(stream) = {stream, record, device, environment.options.handle_check_interval - 1};
}

bool Core::AllocateRemembered(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept {
  StreamRecord* const record = Remembered(device, stream);
  return record != nullptr && TakeCached(bytes, record, out);
}

// Its use of its own handle is recorded by the driver in its own order, whatever stream it is by now; a captured one has to be asked who it
// is there.
CUresult Core::RecordUseByHandle(CUdeviceptr address, int device, CUstream stream) noexcept {
  StreamRecord* record = Remembered(device, stream);
  if (record != nullptr && !record->is_default) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (environment.driver.StreamIsCapturing(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE)
      return uses.RecordUse(address, record, stream);
  }
  StreamRef ref;
  const CUresult result = identities.Identify(device, stream, &ref);
  if (result != CUDA_SUCCESS) return result;
  Remember(device, stream, ref.record());
  return uses.RecordUse(address, ref.record(), stream);
}

CUresult Core::Allocate(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept {
  if (TakeCached(bytes, stream, out)) [[likely]]
    return CUDA_SUCCESS;
  return AllocateSlow(bytes, stream, stream == nullptr ? nullptr : stream->LiveHandle(), out);
}

CUresult Core::Allocate(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept {
  if (TakeCached(bytes, stream, out)) [[likely]]
    return CUDA_SUCCESS;
  return AllocateSlow(bytes, stream, live, out);
}

CUresult Core::Free(CUdeviceptr address) noexcept {
  const std::uint64_t mine = *environment.serial_at;
  const KnownCache& known = known_caches[mine % kKnownCaches];
  if (known.serial != mine || environment.detours.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return uses.Free(address);
  ThreadCache::Latest& latest = known.cache->latest;
  Block* block = latest.block;  // records live as long as the allocator: which block it is now is read below
  if (block == nullptr || block->address.load(std::memory_order_relaxed) != address) {
    block = environment.map.Find(address);
    if (block == nullptr) [[unlikely]]
      return uses.Free(address);
  }
  std::uint64_t state = block->state.load(std::memory_order_acquire);
  const bool is_plain = (state & kFlagMask) == kLive && !block->used.load(std::memory_order_relaxed);
  if (!is_plain || block->address.load(std::memory_order_relaxed) != address) [[unlikely]]
    return uses.Free(address);
  if (!block->state.compare_exchange_strong(state, (state & ~kFlagMask) | kCached, std::memory_order_acq_rel)) [[unlikely]]
    return uses.Free(address);
  Arena* const arena = block->arena.load(std::memory_order_relaxed);
  const std::size_t requested = block->requested.load(std::memory_order_relaxed);
  if (arena != latest.arena && !Turn(known.cache, arena)) [[unlikely]] {
    caches.CountFreed(arena->device, block->large, block->size, requested);
    arena->Return(block);
    return CUDA_SUCCESS;
  }
  latest.counters->Freed(block->large, block->size, requested);
  if (latest.magazine != nullptr && latest.magazine->is_passed_by()) {
    latest.magazine->NoteFreed(block->key);
    ThreadCaches::FoldIfFarOff(arena->device, latest.counters);
    FreeDirectly(arena, block);
    return CUDA_SUCCESS;
  }
  if (latest.magazine == nullptr || !latest.magazine->Put(block, environment.cache_bytes)) [[unlikely]] {
    ThreadCaches::FoldIfFarOff(arena->device, latest.counters);
    arena->Return(block);
  }
  return CUDA_SUCCESS;
}

// The thread turns to another arena. False: it has no counters for that one's device.
[[gnu::noinline]] bool Core::Turn(ThreadCache* cache, Arena* arena) noexcept {
  if (arena == nullptr) return false;
  Counters* const counters = cache->counters(arena->device->index);
  if (counters == nullptr) return false;
  Magazine* const magazine = cache->Find(arena->index);
  cache->latest.arena = magazine == nullptr ? nullptr : arena;  // a slower call may make one
  cache->latest.counters = counters;
  cache->latest.magazine = magazine;
  return true;
}

// The default streams' handles mean streams of the current context.
CUresult Core::AllocateSlow(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept {
  *out = 0;
  if (stream == nullptr || !stream->is_default || stream->device == nullptr || bytes == 0 || environment.Forked())
    return requests.Serve(bytes, stream, live, out);
  CurrentContext current(environment.driver, stream->context);
  if (current.result() != CUDA_SUCCESS) return environment.Note(current.result());
  const CUresult result = requests.Serve(bytes, stream, live, out);
  const CUresult left = current.Leave();
  if (result != CUDA_SUCCESS || left == CUDA_SUCCESS) return result;
  if (*out != 0) (void)Free(*out);
  *out = 0;
  return environment.Note(left);
}

}  // namespace cuaudit::alloc
