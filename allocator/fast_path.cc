// SPDX-License-Identifier: MIT
#include <new>

#include "allocator/core.h"

namespace cuaudit::alloc {
namespace {

// The thread's caches, by allocator. A forked child and a new allocator never match an old entry: serials are not given out twice, and the
// child finds the allocator's own wiped.
struct Slot {
  std::uint64_t serial;
  ThreadCache* cache;
};
constexpr std::size_t kSlotsOfThread = 4;
// The initial-exec model spares a call for each access; 64 bytes fit into what the loader keeps for libraries opened later.
[[gnu::tls_model("initial-exec")]] constinit thread_local Slot slots[kSlotsOfThread] = {};

void DropOwner(ThreadCache* cache) noexcept {
  if (cache->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete cache;
}

// What the thread owns; the fast path does not touch it, so it pays for no guard.
struct OwnedByThread {
  ThreadCache* first = nullptr;
  ~OwnedByThread() {
    for (Slot& slot : slots) slot = Slot{};
    while (first != nullptr) {
      ThreadCache* const cache = first;
      first = cache->next_of_thread;
      cache->next_of_thread = nullptr;
      cache->abandoned.store(true, std::memory_order_release);
      DropOwner(cache);
    }
    ended = true;
  }
  bool ended = false;
};
thread_local OwnedByThread owned;

// What allocators that are gone have left to this thread. Entries of `slots` for them match nobody any more.
void DropOrphans() noexcept {
  for (ThreadCache** link = &owned.first; *link != nullptr;) {
    ThreadCache* const cache = *link;
    if (cache->owners.load(std::memory_order_acquire) != 1) {
      link = &cache->next_of_thread;
      continue;
    }
    *link = cache->next_of_thread;
    delete cache;
  }
}

constexpr std::size_t kMostFast = std::size_t{1} << 40;

// A cached block begins another life.
void Revive(Block* block, std::size_t bytes) noexcept {
  const std::uint64_t life = (block->state.load(std::memory_order_relaxed) & ~kFlagMask) + kOneLife;
  block->requested.store(bytes, std::memory_order_relaxed);
  block->state.store(life | kLive, std::memory_order_release);
}

}  // namespace

CUresult Core::Allocate(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept {
  const std::uint64_t mine = *serial_at;
  const Slot& slot = slots[mine % kSlotsOfThread];
  if (bytes - 1 < kMostFast && slot.serial == mine && detours.load(std::memory_order_relaxed) == 0 && stream != nullptr) [[likely]] {
    const Arena* const arena = stream->arena.load(std::memory_order_acquire);
    Magazine* const magazine = arena == nullptr ? nullptr : slot.cache->Find(arena->index);
    if (magazine != nullptr) [[likely]] {
      Block* const block = magazine->Take(static_cast<std::uint32_t>((bytes + kMinBlock - 1) / kMinBlock));
      if (block != nullptr) [[likely]] {
        Revive(block, bytes);
        slot.cache->counters(arena->device->index)->Allocated(block->large, block->size, bytes);
        *out = block->address.load(std::memory_order_relaxed);
        return CUDA_SUCCESS;
      }
    }
  }
  return AllocateSlow(bytes, stream, live, out);
}

CUresult Core::Free(CUdeviceptr address) noexcept {
  Block* const block = map.Find(address);
  const std::uint64_t mine = *serial_at;
  const Slot& slot = slots[mine % kSlotsOfThread];
  if (block == nullptr || slot.serial != mine || detours.load(std::memory_order_relaxed) != 0) return FreeSlow(address);
  std::uint64_t state = block->state.load(std::memory_order_acquire);
  if ((state & kFlagMask) != kLive || block->address.load(std::memory_order_relaxed) != address) return FreeSlow(address);
  if (!block->state.compare_exchange_strong(state, (state & ~kFlagMask) | kCached, std::memory_order_acq_rel)) return FreeSlow(address);
  Arena* const arena = block->arena.load(std::memory_order_relaxed);
  Counters* const counters = slot.cache->counters(arena->device->index);
  if (counters != nullptr) [[likely]] {
    counters->Freed(block->large, block->size, block->requested.load(std::memory_order_relaxed));
  } else {
    CountFreed(arena->device, block->large, block->size, block->requested.load(std::memory_order_relaxed));
  }
  Magazine* const magazine = slot.cache->Find(arena->index);
  if (magazine == nullptr || !magazine->Put(block, cache_bytes)) arena->Return(block);
  return CUDA_SUCCESS;
}

// Cold: the thread's first slow call for this allocator, or one that shares its slot with another's.
ThreadCache* Core::Cache() noexcept {
  Slot& slot = slots[serial % kSlotsOfThread];
  if (slot.serial == serial) return slot.cache;
  if (!options.thread_cache || owned.ended) return nullptr;
  ThreadCache* cache = owned.first;
  while (cache != nullptr && cache->serial != serial) cache = cache->next_of_thread;
  if (cache == nullptr) {
    DropOrphans();
    const Held held(make_lock);
    cache = caches.load(std::memory_order_relaxed);
    while (cache != nullptr) {
      bool abandoned = true;
      if (cache->abandoned.compare_exchange_strong(abandoned, false, std::memory_order_acq_rel)) {
        cache->owners.fetch_add(1, std::memory_order_relaxed);
        break;
      }
      cache = cache->next;
    }
    if (cache == nullptr) {
      cache = new (std::nothrow) ThreadCache(serial);
      if (cache == nullptr) return nullptr;
      cache->next = caches.load(std::memory_order_relaxed);
      caches.store(cache, std::memory_order_release);
    }
    cache->next_of_thread = owned.first;
    owned.first = cache;
  }
  slot = Slot{serial, cache};
  return cache;
}

// By EmptyArena and whoever is about to ask the driver: what other threads keep of this arena.
void Core::EmptyMagazines(Arena* arena) noexcept {
  for (ThreadCache* cache = caches.load(std::memory_order_acquire); cache != nullptr; cache = cache->next) {
    if (Magazine* const magazine = cache->Find(arena->index); magazine != nullptr) {
      magazine->Empty([arena](Block* block) { arena->Return(block); });
    }
  }
}

void Core::CountAllocated(Device* device, const Block* block, std::size_t requested) noexcept {
  ThreadCache* const cache = Cache();
  Counters* const counters = cache == nullptr ? nullptr : cache->CountersOf(device->index);
  if (counters != nullptr) return counters->Allocated(block->large, block->size, requested);
  const Held held(device->totals.lock);
  device->shared.Allocated(block->large, block->size, requested);
}

void Core::CountFreed(Device* device, bool large, std::size_t size, std::size_t requested) noexcept {
  ThreadCache* const cache = Cache();
  Counters* const counters = cache == nullptr ? nullptr : cache->CountersOf(device->index);
  if (counters != nullptr) return counters->Freed(large, size, requested);
  const Held held(device->totals.lock);
  device->shared.Freed(large, size, requested);
}

void Core::ReleaseCaches() noexcept {
  ThreadCache* cache = caches.exchange(nullptr, std::memory_order_acq_rel);
  while (cache != nullptr) {
    ThreadCache* const next = cache->next;
    DropOwner(cache);
    cache = next;
  }
}

}  // namespace cuaudit::alloc
