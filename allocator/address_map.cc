// SPDX-License-Identifier: MIT
#include "allocator/address_map.h"

#include <new>

namespace cuaudit::alloc {

AddressMap::~AddressMap() {
  if (root_ == nullptr) return;
  for (std::size_t i = 0; i < kSpans; ++i) {
    Span* const span = root_[i].load(std::memory_order_relaxed);
    if (span == nullptr) continue;
    for (Granule& granule : span->granule) delete granule.small.load(std::memory_order_relaxed);
    delete span;
  }
  delete[] root_;
}

bool AddressMap::Init() noexcept {
  root_ = new (std::nothrow) std::atomic<Span*>[kSpans] {};
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
      span = new (std::nothrow) Span{};
      if (span == nullptr) return false;
      slot.store(span, std::memory_order_release);
    }
    Granule& granule = span->granule[at & (kGranules - 1)];
    if (large || granule.small.load(std::memory_order_relaxed) != nullptr) continue;
    Leaf* const leaf = new (std::nothrow) Leaf{};
    if (leaf == nullptr) return false;
    granule.small.store(leaf, std::memory_order_release);
  }
  return true;
}

std::atomic<Block*>* AddressMap::Entry(CUdeviceptr address, bool large) const noexcept {
  Span* const span = root_[address >> kSpanBits].load(std::memory_order_acquire);
  if (span == nullptr) return nullptr;
  Granule& granule = span->granule[(address >> kGranuleBits) & (kGranules - 1)];
  if (large) return &granule.large;
  Leaf* const leaf = granule.small.load(std::memory_order_acquire);
  return leaf == nullptr ? nullptr : &leaf->block[(address >> kUnitBits) & (kUnits - 1)];
}

void AddressMap::Put(Block* block) noexcept {
  Entry(block->address.load(std::memory_order_relaxed), block->large)->store(block, std::memory_order_release);
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
