// SPDX-License-Identifier: MIT
#include "allocator/blocks/free_bins.h"

#include <cstdlib>

namespace cuaudit::alloc {
namespace {

CUdeviceptr AddressOf(const Block* block) noexcept { return block->address.load(std::memory_order_relaxed); }

std::uint64_t HeightOf(const Block* block) noexcept { return AddressOf(block) * 0x9E3779B97F4A7C15U; }

template <bool by_size>
bool StandsBefore(const Block* a, const Block* b) noexcept {
  const bool is_lower = AddressOf(a) < AddressOf(b);
  return by_size ? (a->size < b->size) | ((a->size == b->size) & is_lower) : is_lower;
}

}  // namespace

template <bool by_size>
void BlockTree<by_size>::RotateUp(Block* block) noexcept {
  Block* const above = block->parent;
  Block* const top = above->parent;
  if (above->link == block) {
    above->link = block->link_back;
    if (above->link != nullptr) above->link->parent = above;
    block->link_back = above;
  } else {
    above->link_back = block->link;
    if (above->link_back != nullptr) above->link_back->parent = above;
    block->link = above;
  }
  above->parent = block;
  block->parent = top;
  (top == nullptr ? root_ : top->link == above ? top->link : top->link_back) = block;
}

template <bool by_size>
void BlockTree<by_size>::InsertBelow(Block* block) noexcept {
  Block* above = nullptr;
  Block** place = &root_;
  while (*place != nullptr) {
    above = *place;
    place = StandsBefore<by_size>(block, above) ? &above->link : &above->link_back;
  }
  block->parent = above;
  *place = block;
  while (block->parent != nullptr && HeightOf(block->parent) < HeightOf(block)) RotateUp(block);
}

template <bool by_size>
void BlockTree<by_size>::RemoveFromSeveral(Block* block) noexcept {
  while (block->link != nullptr && block->link_back != nullptr)
    RotateUp(HeightOf(block->link) > HeightOf(block->link_back) ? block->link : block->link_back);
  Block* const below = block->link != nullptr ? block->link : block->link_back;
  Block* const above = block->parent;
  if (below != nullptr) below->parent = above;
  (above == nullptr ? root_ : above->link == block ? above->link : above->link_back) = below;
  block->link = block->link_back = block->parent = nullptr;
}

template <bool by_size>
Block* BlockTree<by_size>::First() const noexcept {
  Block* block = root_;
  while (block != nullptr && block->link != nullptr) block = block->link;
  return block;
}

template <bool by_size>
Block* BlockTree<by_size>::Last() const noexcept {
  Block* block = root_;
  while (block != nullptr && block->link_back != nullptr) block = block->link_back;
  return block;
}

template <bool by_size>
Block* BlockTree<by_size>::AtLeast(std::size_t size) const noexcept {
  Block* found = nullptr;
  for (Block* block = root_; block != nullptr;) {
    if (block->size < size) {
      block = block->link_back;
    } else {
      found = block;
      block = block->link;
    }
  }
  return found;
}

template <bool by_size>
Block* BlockTree<by_size>::Next(const Block* block) noexcept {
  if (Block* next = block->link_back; next != nullptr) {
    while (next->link != nullptr) next = next->link;
    return next;
  }
  Block* above = block->parent;
  while (above != nullptr && above->link_back == block) {
    block = above;
    above = above->parent;
  }
  return above;
}

template class BlockTree<false>;
template class BlockTree<true>;

FreeBins::~FreeBins() { std::free(trees_); }

bool FreeBins::Init(bool up_to_2_mib) noexcept {
  // Of null pointers alone, which zero bytes are.
  trees_ = static_cast<BlockTree<true>*>(std::calloc(up_to_2_mib ? kSmallBins : kBins, sizeof(BlockTree<true>)));
  return trees_ != nullptr;
}

Block* FreeBins::Last() const noexcept {
  if (empty()) return nullptr;
  const std::size_t word = 63 - static_cast<std::size_t>(std::countl_zero(words_));
  return trees_[64 * word + 63 - static_cast<std::size_t>(std::countl_zero(bits_[word]))].Last();
}

}  // namespace cuaudit::alloc
