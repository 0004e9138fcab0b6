// SPDX-License-Identifier: MIT
#include "faults/sim/base/region.h"

#include <sys/mman.h>

#include <bit>

#include "faults/sim/base/treap.h"

namespace cuaudit::sim {
namespace {
constexpr std::uint64_t kSmall = 512;
constexpr std::uint64_t kLarge = std::uint64_t{2} << 20;
constexpr std::uint64_t kReturnToSystem = std::uint64_t{1} << 20;
}  // namespace

bool Region::Adopt(Arena& arena, char* visible, char* bytes, std::size_t size) noexcept {
  Block* const all = arena.New<Block>();
  if (all == nullptr) return false;
  base_ = reinterpret_cast<std::uintptr_t>(visible);
  size_ = size;
  bytes_ = bytes;
  all->base = base_;
  all->size = size_;
  Link(all);
  return true;
}

int Region::BinOf(std::uint64_t size) noexcept { return static_cast<int>(std::bit_width(size / kSmall)) - 1; }

void Region::Link(Block* block) noexcept {
  Block*& bin = bins_[BinOf(block->size)];
  block->free = true;
  block->bin_previous = nullptr;
  block->bin_next = bin;
  if (bin != nullptr) bin->bin_previous = block;
  bin = block;
}

void Region::Unlink(Block* block) noexcept {
  (block->bin_previous != nullptr ? block->bin_previous->bin_next : bins_[BinOf(block->size)]) = block->bin_next;
  if (block->bin_next != nullptr) block->bin_next->bin_previous = block->bin_previous;
  block->bin_next = block->bin_previous = nullptr;
  block->free = false;
}

// Cuts `block` after `head` bytes and returns the rest, which is in no bin.
Block* Region::Split(Arena& arena, Block* block, std::uint64_t head) noexcept {
  Block* const rest = arena.New<Block>();
  if (rest == nullptr) return nullptr;
  rest->base = block->base + head;
  rest->size = block->size - head;
  rest->before = block;
  rest->after = block->after;
  if (rest->after != nullptr) rest->after->before = rest;
  block->after = rest;
  block->size = head;
  return rest;
}

Block* Region::Allocate(Arena& arena, std::uint64_t bytes) noexcept {
  if (bytes == 0 || bytes > size_) return nullptr;
  const std::uint64_t alignment = bytes >= kLarge ? kLarge : kSmall;
  const std::uint64_t size = (bytes + alignment - 1) / alignment * alignment;
  for (int bin = BinOf(size); bin < kBins; ++bin) {
    for (Block* block = bins_[bin]; block != nullptr; block = block->bin_next) {
      const std::uint64_t head = (alignment - block->base % alignment) % alignment;
      if (block->size < head + size) continue;
      Unlink(block);
      if (head != 0) {
        Block* const rest = Split(arena, block, head);
        Link(block);
        if (rest == nullptr) return nullptr;
        block = rest;
      }
      if (block->size > size) {
        Block* const rest = Split(arena, block, size);
        if (rest != nullptr) Link(rest);
      }
      const std::uint64_t end = block->base + block->size - base_;
      if (end > used_) used_ = end;
      return block;
    }
  }
  return nullptr;
}

void Region::Free(Arena& arena, Block* block) noexcept {
  if (block->size >= kReturnToSystem) madvise(Bytes(block->base), block->size, MADV_DONTNEED);
  if (Block* const after = block->after; after != nullptr && after->free) {
    Unlink(after);
    block->size += after->size;
    block->after = after->after;
    if (block->after != nullptr) block->after->before = block;
    arena.Delete(after);
  }
  if (Block* const before = block->before; before != nullptr && before->free) {
    Unlink(before);
    before->size += block->size;
    before->after = block->after;
    if (before->after != nullptr) before->after->before = before;
    arena.Delete(block);
    block = before;
  }
  Link(block);
}

namespace {

using Tree = Treap<Range, &Range::base>;

}  // namespace

Range* RangeTree::FirstFrom(std::uint64_t address) const noexcept {
  Range* best = nullptr;
  for (Range* at = root_; at != nullptr;) {
    if (at->base >= address) {
      best = at;
      at = at->left;
    } else {
      at = at->right;
    }
  }
  return best;
}

bool RangeTree::Insert(Range* range) noexcept {
  if (range->size == 0 || Find(range->base) != nullptr) return false;
  const Range* const above = FirstFrom(range->base);
  if (above != nullptr && above->base - range->base < range->size) return false;
  const std::uint64_t priority = Tree::Priority(range);
  Range** at = &root_;
  while (*at != nullptr && Tree::Priority(*at) >= priority) at = (*at)->base < range->base ? &(*at)->right : &(*at)->left;
  Tree::Split(*at, range->base, &range->left, &range->right);
  *at = range;
  return true;
}

void RangeTree::Remove(Range* range) noexcept {
  Range** at = &root_;
  while (*at != nullptr && *at != range) at = (*at)->base < range->base ? &(*at)->right : &(*at)->left;
  if (*at == nullptr) return;
  *at = Tree::Merge(range->left, range->right);
  range->left = range->right = nullptr;
}

}  // namespace cuaudit::sim
