// SPDX-License-Identifier: MIT
// address_map.h: from the address of a block to its record, without a lock.
//
//   Owns      its tables; 16 KiB for each MiB of small segments, 16 bytes for each MiB of large ones, and 256 KiB for each 16 GiB touched.
//   Threads   Find from any thread at any time; Prepare, Put and Remove too: entries are atomic words, tables are added, never taken away.
//   Units     bytes. Addresses up to 2^49, as devices have; others are never found.
//   Errors    Init, to be called before all else, and Prepare answer false when host memory ran out or the range lies beyond 2^49.
//   Faults    makes no driver calls.
//
// Two live blocks of the large pool never begin in the same MiB, since each is larger than one; so one word per MiB is enough for them.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/blocks/block.h"

namespace cuaudit::alloc {

class AddressMap {
 public:
  AddressMap() = default;
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;
  ~AddressMap();

  bool Init() noexcept;
  // Makes room for blocks of a segment.
  bool Prepare(CUdeviceptr address, std::size_t bytes, bool large) noexcept;
  void Put(Block* block) noexcept {  // in a prepared range
    const CUdeviceptr address = block->address.load(std::memory_order_relaxed);
    Granule& granule = root_[address >> kSpanBits].load(std::memory_order_acquire)->granule[(address >> kGranuleBits) & (kGranules - 1)];
    if (block->large) return granule.large.store(block, std::memory_order_release);
    granule.small.load(std::memory_order_acquire)->block[(address >> kUnitBits) & (kUnits - 1)].store(block, std::memory_order_release);
  }
  void Remove(Block* block) noexcept;  // anywhere below 2^49

  // The record that was last put at this address, or of another block: the caller compares addresses.
  Block* Find(CUdeviceptr address) const noexcept {
    if ((address >> kRootBits) != 0) return nullptr;
    const Span* const span = root_[address >> kSpanBits].load(std::memory_order_acquire);
    if (span == nullptr) return nullptr;
    const Granule& granule = span->granule[(address >> kGranuleBits) & (kGranules - 1)];
    Block* const large = granule.large.load(std::memory_order_acquire);
    if (large != nullptr && large->address.load(std::memory_order_relaxed) == address) return large;
    const Leaf* const leaf = granule.small.load(std::memory_order_acquire);
    return leaf == nullptr ? nullptr : leaf->block[(address >> kUnitBits) & (kUnits - 1)].load(std::memory_order_acquire);
  }

  // The live block with the highest address up to this one: the only one that the address may lie in.
  Block* LiveAtOrBelow(CUdeviceptr address) const noexcept;

 private:
  static constexpr unsigned kUnitBits = 9;      // 512 B
  static constexpr unsigned kGranuleBits = 20;  // 1 MiB
  static constexpr unsigned kSpanBits = 34;     // 16 GiB
  static constexpr unsigned kRootBits = 49;
  static constexpr std::size_t kUnits = std::size_t{1} << (kGranuleBits - kUnitBits);
  static constexpr std::size_t kGranules = std::size_t{1} << (kSpanBits - kGranuleBits);
  static constexpr std::size_t kSpans = std::size_t{1} << (kRootBits - kSpanBits);

  // Zero pages until they are touched, and lists of what was made: a map costs what was put into it, to make and to end.
  struct Leaf {
    Leaf* next_made;
    std::atomic<Block*> block[kUnits];
  };
  struct Granule {
    std::atomic<Block*> large;
    std::atomic<Leaf*> small;
  };
  struct Span {
    Span* next_made;
    Granule granule[kGranules];
  };

  std::atomic<Block*>* Entry(CUdeviceptr address, bool large) const noexcept;

  std::atomic<Span*>* root_ = nullptr;
  Span* spans_ = nullptr;   // under lock_
  Leaf* leaves_ = nullptr;  // under lock_
  Lock lock_;
};

}  // namespace cuaudit::alloc
