// SPDX-License-Identifier: MIT
#include "allocator/blocks/address_map.h"

#include <cstdlib>
#include <utility>

namespace cuaudit::alloc {
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
