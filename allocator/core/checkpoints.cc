// SPDX-License-Identifier: MIT
#include <utility>

#include "allocator/core/core.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {
namespace {

bool IsLive(const Block* block) noexcept { return (block->state.load(std::memory_order_relaxed) & kStatusMask) == kLive; }

// Where those addresses begin, if the arena has memory behind all of them, however it is cut up now. `lock` is held.
const Block* FindRun(const Arena* arena, CUdeviceptr address, std::size_t size) noexcept {
  const Segment* segment = arena->segments;
  while (segment != nullptr && (segment->unusable || address < segment->address || address - segment->address >= segment->size))
    segment = segment->next;
  if (segment == nullptr || size > segment->size - (address - segment->address)) return nullptr;
  const Block* first = segment->first;
  while (first->address.load(std::memory_order_relaxed) + first->size <= address) first = first->next;
  for (const Block* at = first; at != nullptr && at->address.load(std::memory_order_relaxed) < address + size; at = at->next) {
    if (!at->mapped) return nullptr;
  }
  return first;
}

// The blocks follow each other from the segment's beginning to its end, and each can be one that an allocator gave out.
bool IsTiled(const CheckpointSegment& segment) noexcept {
  std::size_t left = segment.size;
  for (const CheckpointBlock& block : segment.blocks) {
    if (block.size == 0 || block.size > left || block.size % kMinBlock != 0 || block.requested > block.size) return false;
    if (block.address != segment.address + (segment.size - left)) return false;
    left -= block.size;
  }
  return left == 0 && segment.size != 0;
}

}  // namespace

CUresult Checkpoints::Take(int device, PoolId id, Checkpoint* out) noexcept {
  Device* target = nullptr;
  const CUresult result = devices_.Find(device, "TakeCheckpoint", &target);
  if (result != CUDA_SUCCESS) return result;
  Pool* const pool = pools_.Find(id);
  if (pool == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "TakeCheckpoint: no such pool");
  try {
    Checkpoint taken;
    taken.device = device;
    taken.pool = id;
    for (Arena* arena = pool->arenas.load(std::memory_order_acquire); arena != nullptr; arena = arena->next_of_pool) {
      if (arena->device != target) continue;
      caches_.Empty(arena);
      const Held held(arena->lock);
      arena->Collect();
      arena->Resettle(Arena::kEverything);
      if (arena->waiting != nullptr || !arena->pending[0].empty() || !arena->pending[1].empty())
        return Refuse(CUDA_ERROR_ILLEGAL_STATE, "TakeCheckpoint: the pool has freed blocks whose uses are not over");
      for (const Segment* segment = arena->segments; segment != nullptr; segment = segment->next) {
        bool in_run = false;
        for (const Block* block = segment->first; block != nullptr; block = block->next) {
          if (block->mapped && !in_run) taken.segments.push_back({block->address.load(std::memory_order_relaxed), 0, {}});
          in_run = block->mapped;
          if (!in_run) continue;
          CheckpointSegment& run = taken.segments.back();
          run.size += block->size;
          run.blocks.push_back({block->address.load(std::memory_order_relaxed), block->size,
                                IsLive(block) ? block->requested.load(std::memory_order_relaxed) : 0, IsLive(block)});
        }
      }
    }
    *out = std::move(taken);
    return CUDA_SUCCESS;
  } catch (...) {
    return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "TakeCheckpoint: no host memory");
  }
}

// Nobody else may use the pool meanwhile. All that can fail comes before the first change.
CUresult Checkpoints::Restore(const Checkpoint& checkpoint, RestoreResult* out) noexcept {
  Device* device = nullptr;
  CUresult result = devices_.Find(checkpoint.device, "RestoreCheckpoint", &device);
  if (result != CUDA_SUCCESS) return result;
  Pool* const pool = pools_.Find(checkpoint.pool);
  if (pool == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "RestoreCheckpoint: no such pool");
  Block* spares = nullptr;
  std::size_t found = 0;
  std::size_t live = 0;
  std::size_t allocated = 0;
  std::size_t cuts = 0;
  for (const CheckpointSegment& segment : checkpoint.segments) {
    if (!IsTiled(segment)) return Refuse(CUDA_ERROR_INVALID_VALUE, "RestoreCheckpoint: the blocks of a segment do not tile it");
    for (const CheckpointSegment& other : checkpoint.segments) {
      if (&other != &segment && other.address - segment.address < segment.size)
        return Refuse(CUDA_ERROR_INVALID_VALUE, "RestoreCheckpoint: two segments of the checkpoint overlap");
    }
    for (const CheckpointBlock& block : segment.blocks) allocated += block.allocated;
    cuts += segment.blocks.size() + 1;
  }
  for (Arena* arena = pool->arenas.load(std::memory_order_acquire); arena != nullptr; arena = arena->next_of_pool) {
    if (arena->device != device) continue;
    caches_.Empty(arena);
    const Held held(arena->lock);
    arena->Collect();
    arena->Resettle(Arena::kEverything);
    if (arena->waiting != nullptr || !arena->pending[0].empty() || !arena->pending[1].empty())
      return Refuse(CUDA_ERROR_ILLEGAL_STATE, "RestoreCheckpoint: the pool has freed blocks whose uses are not over");
    for (const CheckpointSegment& segment : checkpoint.segments) {
      const Block* const run = FindRun(arena, segment.address, segment.size);
      if (run == nullptr) continue;
      ++found;
      for (const CheckpointBlock& block : segment.blocks) {
        // What a thread's cache gives it out for next comes of this.
        const std::size_t rounded = env_.Round(block.requested);
        if (block.allocated && (rounded == 0 || rounded > block.size || (rounded > kSmallLimit) != run->large))
          return Refuse(CUDA_ERROR_INVALID_VALUE, "RestoreCheckpoint: no request for so many bytes gets such a block");
      }
    }
    for (const Segment* segment = arena->segments; segment != nullptr; segment = segment->next) {
      for (const Block* block = segment->first; block != nullptr; block = block->next) {
        live += IsLive(block);
        const std::uint64_t state = block->state.load(std::memory_order_relaxed);
        const bool has_uses = block->used.load(std::memory_order_relaxed) || (state & (kHasUses | kHasStreams | kForeign)) != 0;
        if (IsLive(block) && has_uses)
          return Refuse(CUDA_ERROR_ILLEGAL_STATE, "RestoreCheckpoint: a block that would be freed has uses by other streams");
      }
    }
  }
  if (found != checkpoint.segments.size())
    return Refuse(CUDA_ERROR_INVALID_VALUE, "RestoreCheckpoint: the pool no longer has the checkpoint's segments");
  try {
    out->freed.clear();
    out->allocated.clear();
    out->freed.reserve(live);
    out->allocated.reserve(allocated);
  } catch (...) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (std::size_t i = 0; i < cuts && result == CUDA_SUCCESS; ++i) {
    Block* const spare = env_.store.Take();
    if (spare == nullptr) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (spare == nullptr) break;
    spare->link = spares;
    spares = spare;
  }
  for (Arena* arena = pool->arenas.load(std::memory_order_acquire); arena != nullptr && result == CUDA_SUCCESS;
       arena = arena->next_of_pool) {
    if (arena->device != device) continue;
    RestoreArena(arena, checkpoint, &spares, out);
  }
  while (spares != nullptr) {
    Block* const spare = spares;
    spares = spare->link;
    env_.store.Give(spare);
  }
  return result == CUDA_SUCCESS ? result : Refuse(result, "RestoreCheckpoint: no host memory");
}

void Checkpoints::RestoreArena(Arena* arena, const Checkpoint& checkpoint, Block** spares, RestoreResult* out) noexcept {
  const Held held(arena->lock);
  const std::uint64_t own = arena->stream->NextSequence();
  for (Segment* segment = arena->segments; segment != nullptr; segment = segment->next) {
    for (Block* block = segment->first; block != nullptr; block = block->next) {
      if (!IsLive(block)) continue;
      out->freed.push_back(block->address.load(std::memory_order_relaxed));
      caches_.CountFreed(arena->device, block, block->requested.load(std::memory_order_relaxed));
      block->state.store((block->state.load(std::memory_order_relaxed) & ~kFlagMask) | kFree, std::memory_order_release);
      arena->TakeBack(block, own);  // merged with its neighbours; it is `block` that stays
    }
  }
  const auto take_spare = [spares] {
    Block* const spare = *spares;
    *spares = spare->link;
    spare->link = nullptr;
    return spare;
  };
  for (const CheckpointSegment& wanted : checkpoint.segments) {
    const Segment* segment = arena->segments;
    while (segment != nullptr && (wanted.address < segment->address || wanted.address - segment->address >= segment->size))
      segment = segment->next;
    if (segment == nullptr) continue;
    Block* block = segment->first;
    while (block->address.load(std::memory_order_relaxed) + block->size <= wanted.address) block = block->next;
    arena->Remove(block);
    if (const std::size_t before = wanted.address - block->address.load(std::memory_order_relaxed); before != 0) {
      Block* const rest = arena->SplitAt(block, before, take_spare());
      arena->Insert(block, Place::Ready);
      block = rest;
    }
    for (const CheckpointBlock& piece : wanted.blocks) {
      Block* const rest = block->size > piece.size ? arena->SplitAt(block, piece.size, take_spare()) : nullptr;
      if (piece.allocated) {
        Request request;
        request.bytes = piece.requested;
        request.size = env_.Round(piece.requested);
        request.large = block->large;
        request.stream = arena->stream;
        arena->GiveOut(block, request);
        caches_.CountAllocated(arena->device, block, piece.requested);
        Raise(&arena->served_ready);
        out->allocated.push_back(piece.address);
      } else {
        arena->Insert(block, Place::Ready);
      }
      block = rest;
    }
    if (block != nullptr) arena->Settle(block);
  }
}

}  // namespace cuaudit::alloc
