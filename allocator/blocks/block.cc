// SPDX-License-Identifier: MIT
#include "allocator/blocks/block.h"

#include <new>

#include "allocator/uses/stamps.h"

namespace cuaudit::alloc {

namespace {
constexpr std::size_t kBlocksPerChunk = 64;
}

void Segment::Hold(Arena* whose, Block* block, CUdeviceptr from, std::size_t bytes, bool is_large) noexcept {
  address = from;
  size = bytes;
  arena = whose;
  large = is_large;
  first = block;
  block->address.store(from, std::memory_order_relaxed);
  block->size = bytes;
  block->large = is_large;
  block->arena = whose;
  block->segment = this;
}

struct BlockStore::Chunk {
  Chunk* next = nullptr;
  Block blocks[kBlocksPerChunk];
};

BlockStore::~BlockStore() {
  while (chunks_ != nullptr) {
    Chunk* const chunk = chunks_;
    chunks_ = chunk->next;
    delete chunk;
  }
}

Block* BlockStore::Take() noexcept {
  const Held held(lock_);
  if (free_ == nullptr) {
    Chunk* const chunk = new (std::nothrow) Chunk;
    if (chunk == nullptr) return nullptr;
    chunk->next = chunks_;
    chunks_ = chunk;
    for (std::size_t i = kBlocksPerChunk; i-- > 0;) {
      chunk->blocks[i].link = free_;
      free_ = &chunk->blocks[i];
    }
    made_.fetch_add(kBlocksPerChunk, std::memory_order_relaxed);
  }
  Block* const block = free_;
  free_ = block->link;
  block->link = nullptr;
  return block;
}

void ClaimUses(Block* block) noexcept {
  block->used.store(false, std::memory_order_relaxed);
  for (std::size_t i = 0; i < UseSlots::kCount; ++i) {
    if (block->slots.sequence[i].load(std::memory_order_relaxed) == 0) continue;
    StreamRecord* const stream = block->slots.stream[i].load(std::memory_order_relaxed);
    const std::uint64_t sequence = stream->Claim(&block->slots, i);
    if (sequence == 0) continue;
    (void)block->uses.Add(stream, sequence);
    block->noted.store(true, std::memory_order_relaxed);
  }
}

void BlockStore::Reset(Block* block) noexcept {
  block->state.store(block->state.load(std::memory_order_relaxed) & ~kFlagMask, std::memory_order_release);
  block->address.store(0, std::memory_order_relaxed);
  block->requested.store(0, std::memory_order_relaxed);
  if (block->has_stack) block->stack.store(nullptr, std::memory_order_relaxed);
  block->has_stack = false;
  if (block->noted.load(std::memory_order_relaxed)) {
    block->uses.Clear();
    block->recorded.Clear();
    block->noted.store(false, std::memory_order_relaxed);
  }
  block->arena = nullptr;
  block->segment = nullptr;
  block->stream = nullptr;
  block->prev = block->next = block->link_back = block->parent = nullptr;
  block->size = 0;
  block->key = 0;
  block->place = Place::None;
  block->mapped = true;
  block->counted_pending = false;
  block->own_sequence = 0;
  block->given_in = 0;
}

void BlockStore::Give(Block* block) noexcept {
  Reset(block);
  const Held held(lock_);
  block->link = free_;
  free_ = block;
}

}  // namespace cuaudit::alloc
