// SPDX-License-Identifier: MIT
#include <algorithm>

#include "allocator/errors.h"
#include "allocator/requests/segment_source.h"

namespace cuaudit::alloc {
namespace {

bool IsWhole(const Block* block) noexcept { return block->prev == nullptr && block->next == nullptr; }

bool HasWholePage(const Block* block) noexcept {
  const Segment* const segment = block->segment;
  const std::size_t offset = block->address.load(std::memory_order_relaxed) - segment->address;
  return (offset + segment->page - 1) / segment->page < (offset + block->size) / segment->page;
}

// A segment that nobody may use any more, since a release of it failed and so did the question whether it was done.
Segment* NextDoubted(Arena* arena) noexcept {
  const Held held(arena->lock);
  Segment* segment = arena->segments;
  while (segment != nullptr && (segment->expandable || !segment->unusable || !segment->tenure.doubted)) segment = segment->next;
  return segment;
}

}  // namespace

// What is free of the arena goes back to the driver, the largest first, until the device has no more than that reserved: unless its pool is
// private and in use, or has become another than `only` meanwhile. Device::releasing is held.
CUresult CachedMemory::EmptyArena(Arena* arena, std::size_t until_reserved, const PoolId* only) noexcept {
  Device* const device = arena->device;
  if (device->reserved.load(std::memory_order_relaxed) <= until_reserved) return CUDA_SUCCESS;
  // What could be neither freed nor asked about, the last time.
  CUresult first = CUDA_SUCCESS;
  while (first == CUDA_SUCCESS) {
    Segment* const segment = NextDoubted(arena);
    if (segment == nullptr) break;
    first = source_.ReleaseSegment(segment);
  }
  caches_.Empty(arena);
  const CUresult synced = synchronizer_.SyncArena(arena);
  if (first == CUDA_SUCCESS) first = synced;
  Block* list = nullptr;
  {
    const Held held(arena->lock);
    arena->Collect();
    // A pool gets its first user, and its number, when it has no segment: so what there is now was given to nobody else.
    const Pool* const pool = arena->pool;
    const bool may_go = only != nullptr ? pool->id() == *only : !pool->is_private || pool->users.load(std::memory_order_acquire) == 0;
    for (FreeBins& set : arena->ready) {
      Block* following = may_go ? set.First() : nullptr;
      while (following != nullptr) {
        Block* const block = following;
        following = set.Next(block);
        const bool expandable = block->segment->expandable;
        if (expandable ? !HasWholePage(block) : !IsWhole(block)) continue;
        arena->Remove(block);
        block->link = list;
        list = block;
      }
    }
  }
  while (list != nullptr) {
    Block* const block = list;
    list = block->link;
    block->link = nullptr;
    if (device->reserved.load(std::memory_order_relaxed) <= until_reserved) {
      const Held held(arena->lock);
      arena->Settle(block);
      continue;
    }
    const CUresult result = source_.Release(block);
    if (first == CUDA_SUCCESS) first = result;
  }
  return first;
}

CUresult CachedMemory::EmptyDevice(Device* device, std::size_t until_reserved) noexcept {
  CUresult first = CUDA_SUCCESS;
  for (Arena* arena = arenas_.First(); arena != nullptr; arena = arena->next_all) {
    if (arena->device != device || (arena->pool->is_private && arena->pool->users.load(std::memory_order_acquire) != 0)) continue;
    const CUresult result = EmptyArena(arena, until_reserved, nullptr);
    if (first == CUDA_SUCCESS) first = result;
  }
  return first;
}

CUresult CachedMemory::EmptyCache(const PoolId* only) noexcept {
  CUresult first = env_.Usable("EmptyCache");
  if (first != CUDA_SUCCESS) return first;
  if (only == nullptr) {
    for (const std::unique_ptr<Device>& device : devices_) {
      const Held releasing(device->releasing);
      const CUresult result = EmptyDevice(device.get(), 0);
      if (first == CUDA_SUCCESS) first = result;
    }
    return env_.Note(first);
  }
  const Pool* const pool = pools_.Find(*only);
  if (pool == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "EmptyCache: no such pool");
  if (pool->routes.load(std::memory_order_acquire) != 0)
    return Refuse(CUDA_ERROR_ILLEGAL_STATE, "EmptyCache: allocations are being directed to the pool: end that first");
  for (Arena* arena = arenas_.First(); arena != nullptr; arena = arena->next_all) {
    if (arena->pool != pool) continue;
    const Held releasing(arena->device->releasing);
    const CUresult result = EmptyArena(arena, 0, only);
    if (first == CUDA_SUCCESS) first = result;
  }
  return env_.Note(first);
}

CUresult CachedMemory::Trim(int device, std::size_t reserved_bytes) noexcept {
  Device* target = nullptr;
  CUresult result = devices_.Find(device, "Trim", &target);
  if (result != CUDA_SUCCESS) return result;
  const Held releasing(target->releasing);
  return env_.Note(EmptyDevice(target, reserved_bytes));
}

bool CachedMemory::ReleaseOversize(Arena* arena, const Request& request) noexcept {
  if (env_.options.max_split_size == 0 || !request.large || arena->pool->is_private) return false;
  const std::size_t wanted = std::max(request.size, env_.options.max_split_size);
  std::size_t released = 0;
  while (released < wanted) {
    Block* block = nullptr;
    {
      const Held held(arena->lock);
      const FreeBins& set = arena->ready[1];
      block = set.AtLeast(wanted - released);
      if (block == nullptr) block = set.Last();
      while (block != nullptr && block->size >= env_.options.max_split_size && (!IsWhole(block) || block->segment->expandable))
        block = set.Next(block);
      if (block == nullptr || block->size < env_.options.max_split_size) break;
      arena->Remove(block);
    }
    const std::size_t bytes = block->size;
    if (source_.Release(block) != CUDA_SUCCESS) break;
    released += bytes;
  }
  return released != 0;
}

void CachedMemory::CollectGarbage(Device* device, const Request& request) noexcept {
  const std::size_t limit = std::min(device->limit.load(std::memory_order_relaxed), device->total);
  const std::size_t threshold = static_cast<std::size_t>(env_.options.garbage_collection_threshold * static_cast<double>(limit));
  const auto excess = [&] { return device->reserved.load(std::memory_order_relaxed) + request.size > threshold; };
  const auto visit = [&](auto look) {  // calls look(arena, age, block)
    for (Arena* arena = arenas_.First(); arena != nullptr; arena = arena->next_all) {
      if (arena->device != device || arena->pool->is_private) continue;
      const Held held(arena->lock);
      arena->Collect();  // if nobody searched here since a block was freed, its age begins now
      const std::uint64_t now = device->searches.load(std::memory_order_relaxed);
      Block* following = arena->ready[1].First();
      while (following != nullptr) {
        Block* const block = following;
        following = arena->ready[1].Next(block);
        if (IsWhole(block) && !block->segment->expandable) look(arena, now - std::min(now, block->age), block);
      }
    }
  };
  for (bool any = true; any && excess();) {
    any = false;
    std::uint64_t ages = 0;
    std::uint64_t count = 0;
    visit([&](Arena*, std::uint64_t age, Block*) {
      ages += age;
      ++count;
    });
    if (count == 0) return;
    Block* list = nullptr;
    visit([&](Arena* arena, std::uint64_t age, Block* block) {
      if (age * count < ages) return;
      arena->Remove(block);
      block->link = list;
      list = block;
    });
    while (list != nullptr) {
      Block* const block = list;
      list = block->link;
      block->link = nullptr;
      if (excess()) {
        any = source_.Release(block) == CUDA_SUCCESS || any;
      } else {
        Arena* const arena = block->arena.load(std::memory_order_relaxed);
        const Held held(arena->lock);
        arena->Settle(block);
      }
    }
  }
}

}  // namespace cuaudit::alloc
