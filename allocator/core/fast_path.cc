// SPDX-License-Identifier: MIT
#include "allocator/core/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kMostFast = std::size_t{1} << 40;

std::uint32_t KeyOf(std::size_t bytes) noexcept { return static_cast<std::uint32_t>((bytes + kMinBlock - 1) / kMinBlock); }

}  // namespace

// The path without locks calls a function only as its last step, and only in rare cases. So the compiler saves no registers for it. Stores
// are few, because the next locked instruction waits until they are done.

// Serves from the thread's cache with what it kept last. Returns false when the cache belongs to another allocator or arena, when what it
// kept last does not fit, or when it is time to ask again whether the stream is captured.
[[gnu::always_inline]] inline bool Core::TakeKept(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept {
  if (known_cache.serial != environment.fast_serial() || bytes - 1 >= kMostFast || stream == nullptr) [[unlikely]]
    return false;
  ThreadCache::Latest& latest = known_cache.cache->latest;
  const Arena* const arena = stream->fast_arena.load(std::memory_order_acquire);
  if (arena == nullptr || arena != latest.arena) [[unlikely]]
    return false;
  Block* const block = latest.magazine->TakeLatestUnasked(KeyOf(bytes));
  if (block == nullptr) [[unlikely]]
    return false;
  HandKept(&latest, block, bytes, out);
  return true;
}

[[gnu::always_inline]] inline void Core::HandKept(ThreadCache::Latest* latest, Block* block, std::size_t bytes, CUdeviceptr* out) noexcept {
  const std::size_t before = block->requested.load(std::memory_order_relaxed);
  block->requested.store(bytes, std::memory_order_relaxed);
  block->state.store(block->state.load(std::memory_order_relaxed) + kOneLife + kLive - kCached, std::memory_order_release);
  latest->block = block;
  *out = block->address.load(std::memory_order_relaxed);
  latest->counters->AllocatedKept(block, block->large, block->size, bytes, before);
}

// What TakeKept did not, without asking the driver: after a turn to another allocator or arena, from any slot, and, where the thread's
// cache is passed by, from what is free for certain.
[[gnu::always_inline]] inline bool Core::TakeOtherwise(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept {
  if (bytes - 1 >= kMostFast || stream == nullptr || (known_cache.serial != environment.fast_serial() && !caches.TurnTo())) return false;
  ThreadCache::Latest& latest = known_cache.cache->latest;
  Arena* const arena = stream->fast_arena.load(std::memory_order_acquire);
  if (arena == nullptr || (arena != latest.passed_by && arena != latest.arena && !known_cache.cache->TurnTo(arena)) ||
      !latest.magazine->MayServeUnasked()) [[unlikely]]
    return false;
  if (arena == latest.arena) {
    Block* const block = latest.magazine->Take(KeyOf(bytes));
    if (block != nullptr) HandKept(&latest, block, bytes, out);
    return block != nullptr;
  }
  if (latest.magazine->NoteRequest(KeyOf(bytes))) known_cache.cache->TurnToNone();
  Block* const block = TakeDirectly(arena, bytes, stream);
  if (block == nullptr) [[unlikely]]
    return false;
  latest.counters->Allocated(block->large, block->size, bytes);
  latest.block = block;
  *out = block->address.load(std::memory_order_relaxed);
  return true;
}

// As Serve would, from what is free for certain, where no uses are to be looked at first. nullptr: Serve has to.
inline Block* Core::TakeDirectly(Arena* arena, std::size_t bytes, StreamRecord* stream) noexcept {
  if (!environment.serves_directly || stream->IsStampDue()) return nullptr;
  const std::size_t size = (bytes + kMinBlock - 1) / kMinBlock * kMinBlock;
  const Held held(arena->lock);
  return arena->CutBestFit(bytes, size, stream);
}

inline StreamRecord* Core::Remembered(int device, CUstream stream) noexcept {
  if (known_cache.serial != environment.fast_serial()) [[unlikely]]
    return nullptr;
  ThreadCache::Named& named = known_cache.cache->NamedAt(stream);
  if (named.left == 0 || named.handle != stream || named.device != device || named.record->retired.load(std::memory_order_relaxed))
    return nullptr;
  --named.left;
  return named.record;
}

// What a handle is in a capture is asked each time: nothing but the driver tells when that is over.
void Core::Remember(int device, CUstream stream, StreamRecord* record) noexcept {
  if (record->scope != Scope::Stream || record->device == nullptr) return;
  ThreadCache* const cache = record->device->index == device ? caches.Mine() : nullptr;
  if (cache != nullptr) cache->NamedAt(stream) = {stream, record, device, environment.options.handle_check_interval - 1};
}

// Of the stream that the handle means. Each of these ends with a call, and the path without locks is the same for all.
CUresult Core::Allocate(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept {
  Device* const target = devices.At(device);
  StreamRecord* const known = target == nullptr ? nullptr : identities.Known(target, stream);
  return known != nullptr && known->device == target ? Allocate(bytes, known, stream, out)
                                                     : AllocateAsked(target, device, bytes, stream, out);
}

[[gnu::noinline]] CUresult Core::AllocateAsked(Device* target, int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept {
  if (bytes - 1 >= kTooLarge || target == nullptr || environment.options.handle_check_interval != 1) [[unlikely]]
    return AllocateBelieved(device, bytes, stream, out);
  *out = 0;
  if (const CUresult result = environment.Usable("Identify"); result != CUDA_SUCCESS) [[unlikely]]
    return result;
  const Identities::Named named = identities.NameAnew(target, stream);
  if (named.result != CUDA_SUCCESS) [[unlikely]]
    return named.result;
  if (named.record->device != target) [[unlikely]]
    return RefuseOfOther(device);
  return Allocate(bytes, named.record, stream, out);
}

[[gnu::cold]] CUresult Core::RefuseOfOther(int device) noexcept {
  return Refuse(CUDA_ERROR_INVALID_CONTEXT, "Allocate: the stream is of another context than device %d's", device);
}

// The same where the handle is perhaps believed, or something is wrong.
[[gnu::noinline]] CUresult Core::AllocateBelieved(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept {
  *out = 0;
  if (bytes == 0) return environment.Usable("Allocate");
  if (bytes > kTooLarge) return Refuse(CUDA_ERROR_INVALID_VALUE, "Allocate: %zu bytes: at most 2^60 are possible", bytes);
  if (TakeBelieved(device, bytes, stream, out)) return CUDA_SUCCESS;
  const Identities::Named named = identities.Name(device, stream);
  if (named.result != CUDA_SUCCESS) return named.result;
  if (named.record->device != devices.At(device)) return RefuseOfOther(device);
  Remember(device, stream, named.record);
  return Allocate(bytes, named.record, stream, out);
}

bool Core::TakeBelieved(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept {
  StreamRecord* const believed = Remembered(device, stream);
  return believed != nullptr && (TakeKept(bytes, believed, out) || TakeOtherwise(bytes, believed, out));
}

// Who has just been asked who it is has been asked whether it is captured, too. `device` is one of the allocator's.
CUresult Core::RecordUse(CUdeviceptr address, int device, CUstream stream) noexcept {
  Device* const target = devices.At(device);
  StreamRecord* record = identities.Known(target, stream);
  if (record != nullptr) return uses.RecordUse(address, record, stream);
  if (environment.options.handle_check_interval != 1) [[unlikely]]
    record = NameBelieved(device, stream);
  if (record == nullptr) [[likely]] {
    if (const CUresult result = environment.Usable("RecordUse"); result != CUDA_SUCCESS) [[unlikely]]
      return result;
    const Identities::Named named = identities.NameAnew(target, stream);
    if (named.result != CUDA_SUCCESS) [[unlikely]]
      return named.result;
    record = named.record;
    if (environment.options.handle_check_interval != 1) [[unlikely]]
      Remember(device, stream, record);
  }
  return record->is_default ? uses.RecordUse(address, record, stream) : uses.RecordUseAsked(address, record, stream);
}

// Its use of its own handle is recorded by the driver in its own order, whatever stream it is by now; a captured one has to be asked who it
// is there: nullptr.
[[gnu::noinline]] StreamRecord* Core::NameBelieved(int device, CUstream stream) noexcept {
  StreamRecord* const believed = Remembered(device, stream);
  if (believed == nullptr || believed->is_default) return nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = environment.driver.StreamIsCapturing(stream, &status);
  return result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE ? believed : nullptr;
}

CUresult Core::Allocate(std::size_t bytes, StreamRecord* stream, CUdeviceptr* out) noexcept {
  if (TakeKept(bytes, stream, out)) [[likely]]
    return CUDA_SUCCESS;
  return AllocateOtherwise(bytes, stream, stream == nullptr ? nullptr : stream->LiveHandle(), out);
}

CUresult Core::Allocate(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept {
  if (TakeKept(bytes, stream, out)) [[likely]]
    return CUDA_SUCCESS;
  return AllocateOtherwise(bytes, stream, live, out);
}

[[gnu::noinline]] CUresult Core::AllocateOtherwise(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept {
  if (TakeOtherwise(bytes, stream, out)) [[likely]]
    return CUDA_SUCCESS;
  return AllocateSlow(bytes, stream, live, out);
}

CUresult Core::Free(CUdeviceptr address) noexcept {
  if (known_cache.serial != environment.fast_serial()) [[unlikely]]
    return FreeOtherwise(address);
  ThreadCache::Latest& latest = known_cache.cache->latest;
  Block* block = latest.block;  // records live as long as the allocator
  std::uint64_t state = 0;
  if (!IsAt(block, address, &state)) {
    block = environment.map.Find(address);
    if (!IsAt(block, address, &state)) [[unlikely]]
      return uses.Free(address);
  }
  const bool is_plain = (state & kFlagMask) == kLive && !block->used.load(std::memory_order_relaxed);
  if (!is_plain || !block->state.compare_exchange_strong(state, state - kLive + kCached, std::memory_order_acq_rel)) [[unlikely]]
    return uses.Free(address);
  if (block->arena.load(std::memory_order_relaxed) != latest.arena) [[unlikely]]
    return PutOtherwise(block);
  latest.counters->Freed(block, block->large, block->size, block->requested.load(std::memory_order_relaxed));
  if (latest.magazine->PutAtOnce(block, environment.cache_bytes)) [[likely]]
    return CUDA_SUCCESS;
  return PutOrReturn(block);
}

[[gnu::noinline]] CUresult Core::FreeOtherwise(CUdeviceptr address) noexcept {
  return caches.TurnTo() ? Free(address) : uses.Free(address);
}

// A block of another arena than the one that this thread keeps blocks of is nobody's any more.
[[gnu::noinline]] CUresult Core::PutOtherwise(Block* block) noexcept {
  ThreadCache* const cache = known_cache.cache;
  ThreadCache::Latest& latest = cache->latest;
  Arena* const arena = block->arena.load(std::memory_order_relaxed);
  const std::size_t requested = block->requested.load(std::memory_order_relaxed);
  if (arena != latest.passed_by && !cache->TurnTo(arena)) [[unlikely]] {
    caches.CountFreed(arena->device, block, requested);
    arena->Return(block);
    return CUDA_SUCCESS;
  }
  latest.counters->Freed(block, block->large, block->size, requested);
  if (arena != latest.passed_by) return PutOrReturn(block);
  latest.magazine->NoteFreed(block->key);
  ThreadCaches::FoldIfFarOff(arena->device, latest.counters);
  // Nobody waits in Free for another thread's search: then it is left for whoever searches next.
  if (!arena->lock.try_lock()) {
    arena->Return(block);
    return CUDA_SUCCESS;
  }
  arena->TakeBack(block, arena->stream->NextSequence());
  arena->lock.unlock();
  return CUDA_SUCCESS;
}

// A block that has been counted, of the arena that this thread keeps blocks of.
[[gnu::noinline]] CUresult Core::PutOrReturn(Block* block) noexcept {
  const ThreadCache::Latest& latest = known_cache.cache->latest;
  if (latest.magazine->Put(block, environment.cache_bytes)) return CUDA_SUCCESS;
  Arena* const arena = block->arena.load(std::memory_order_relaxed);
  ThreadCaches::FoldIfFarOff(arena->device, latest.counters);
  arena->Return(block);
  return CUDA_SUCCESS;
}

// The default streams' handles mean streams of the current context.
[[gnu::noinline]] CUresult Core::AllocateSlow(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept {
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
