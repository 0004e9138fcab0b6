// SPDX-License-Identifier: MIT
#include "allocator/blocks/free_bins.h"

#include <cstdlib>
#include <utility>

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

namespace {

// Of atomic pointers alone, for which zero bytes are null.
template <typename T>
T* Zeroed(std::size_t count) noexcept {
  return static_cast<T*>(std::calloc(count, sizeof(T)));
}

bool IsLiveAt(const Block* block, CUdeviceptr from, CUdeviceptr to) noexcept {
  if (block == nullptr || (block->state.load(std::memory_order_acquire) & kStatusMask) != kLive) return false;
  const CUdeviceptr address = block->address.load(std::memory_order_relaxed);
  return address >= from && address <= to;
}

}  // namespace

AddressMap::~AddressMap() {
  while (leaves_ != nullptr) std::free(std::exchange(leaves_, leaves_->next_made));
  while (spans_ != nullptr) std::free(std::exchange(spans_, spans_->next_made));
  std::free(root_);
}

bool AddressMap::Init() noexcept {
  root_ = Zeroed<std::atomic<Span*>>(kSpans);
  return root_ != nullptr;
}

bool AddressMap::Prepare(CUdeviceptr address, std::size_t bytes, bool large) noexcept {
  const CUdeviceptr last = address + bytes - 1;
  if (bytes == 0 || last < address || (last >> kRootBits) != 0) return false;
  const Held held(lock_);
  for (CUdeviceptr at = address >> kGranuleBits; at <= last >> kGranuleBits; ++at) {
    std::atomic<Span*>& slot = root_[at >> (kSpanBits - kGranuleBits)];
    Span* span = slot.load(std::memory_order_relaxed);
    if (span == nullptr) {
      span = Zeroed<Span>(1);
      if (span == nullptr) return false;
      span->next_made = spans_;
      spans_ = span;
      slot.store(span, std::memory_order_release);
    }
    Granule& granule = span->granule[at & (kGranules - 1)];
    if (large || granule.small.load(std::memory_order_relaxed) != nullptr) continue;
    Leaf* const leaf = Zeroed<Leaf>(1);
    if (leaf == nullptr) return false;
    leaf->next_made = leaves_;
    leaves_ = leaf;
    granule.small.store(leaf, std::memory_order_release);
  }
  return true;
}

Block* AddressMap::LiveAtOrBelow(CUdeviceptr address) const noexcept {
  if ((address >> kRootBits) != 0) return nullptr;
  for (CUdeviceptr at = address >> kGranuleBits;; --at) {
    const Span* const span = root_[at >> (kSpanBits - kGranuleBits)].load(std::memory_order_acquire);
    if (span == nullptr) {
      at &= ~CUdeviceptr{kGranules - 1};  // nothing was ever put into the rest of it
    } else {
      const Granule& granule = span->granule[at & (kGranules - 1)];
      const CUdeviceptr begin = at << kGranuleBits;
      const CUdeviceptr end = begin + (CUdeviceptr{1} << kGranuleBits) - 1;
      const CUdeviceptr last = address < end ? address : end;
      if (const Leaf* const leaf = granule.small.load(std::memory_order_acquire); leaf != nullptr) {
        for (std::size_t unit = ((last - begin) >> kUnitBits) + 1; unit-- != 0;) {
          Block* const block = leaf->block[unit].load(std::memory_order_acquire);
          if (IsLiveAt(block, begin + (unit << kUnitBits), last)) return block;
        }
      }
      Block* const large = granule.large.load(std::memory_order_acquire);
      if (IsLiveAt(large, begin, last)) return large;
    }
    if (at == 0) return nullptr;
  }
}

std::atomic<Block*>* AddressMap::Entry(CUdeviceptr address, bool large) const noexcept {
  Span* const span = root_[address >> kSpanBits].load(std::memory_order_acquire);
  if (span == nullptr) return nullptr;
  Granule& granule = span->granule[(address >> kGranuleBits) & (kGranules - 1)];
  if (large) return &granule.large;
  Leaf* const leaf = granule.small.load(std::memory_order_acquire);
  return leaf == nullptr ? nullptr : &leaf->block[(address >> kUnitBits) & (kUnits - 1)];
}

void AddressMap::Remove(Block* block) noexcept {
  std::atomic<Block*>* const entry = Entry(block->address.load(std::memory_order_relaxed), block->large);
  if (entry == nullptr) return;
  if (!block->large) {  // an entry of one address, and so of one arena, whose lock is held
    if (entry->load(std::memory_order_relaxed) == block) entry->store(nullptr, std::memory_order_relaxed);
    return;
  }
  Block* expected = block;
  entry->compare_exchange_strong(expected, nullptr);
}

}  // namespace cuaudit::alloc
