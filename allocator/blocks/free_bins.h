// SPDX-License-Identifier: MIT
// free_bins.h: how a block is found: a free one by its size, and any one by its address.
#pragma once

#include <cuda.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "allocator/blocks/block.h"

namespace cuaudit::alloc {

// Free blocks ordered by size, then address: the smallest that fits, and of those the lowest, in a few instructions.
//
//   Owns      the table of bins; the blocks are the arena's, and the links in them are theirs: a block stands in one set at a time.
//   Threads   not thread-safe; the arena's lock guards it.
//   Units     bytes, multiples of 512.
//   Errors    Init answers false when host memory ran out; nothing else asks for any.
//
// A bin holds the blocks of one size below 32 KiB, of a 32nd of an octave beyond. A bit per bin tells which are not empty. Within a bin
// the blocks are a balanced tree, mostly of one or two: ten thousand free blocks of one size cost a search of fourteen steps.

// A search tree of blocks by address, or by size and then address. Block::link and link_back are the children. Balanced on average whatever
// the order of insertions: each block lies below those whose address has a higher hash.
template <bool by_size>
class BlockTree {
 public:
  bool empty() const noexcept { return root_ == nullptr; }
  // True: it was empty before.
  bool Insert(Block* block) noexcept {
    block->link = block->link_back = nullptr;
    block->parent = nullptr;
    if (root_ != nullptr) [[unlikely]] {
      InsertBelow(block);
      return false;
    }
    root_ = block;
    return true;
  }
  // True: it is empty now.
  bool Remove(Block* block) noexcept {
    const bool has_children = (block->link != nullptr) | (block->link_back != nullptr);
    if ((root_ != block) | has_children) [[unlikely]] {
      RemoveFromSeveral(block);
      return false;
    }
    root_ = nullptr;
    return true;
  }
  Block* First() const noexcept;
  Block* Last() const noexcept;
  Block* AtLeast(std::size_t size) const noexcept;  // the first of at least that size; nullptr: there is none
  static Block* Next(const Block* block) noexcept;  // nullptr: it was the last

 private:
  void InsertBelow(Block* block) noexcept;
  void RemoveFromSeveral(Block* block) noexcept;
  void RotateUp(Block* block) noexcept;
  Block* root_ = nullptr;
};

class FreeBins {
 public:
  FreeBins() = default;
  FreeBins(const FreeBins&) = delete;
  FreeBins& operator=(const FreeBins&) = delete;
  ~FreeBins();

  // Before the first Insert. `up_to_2_mib`: no block will be larger, so a third of the table is enough.
  bool Init(bool up_to_2_mib) noexcept;
  bool empty() const noexcept { return words_ == 0; }
  void Insert(Block* block) noexcept {
    const std::size_t bin = BinOf(block->size);
    block->bin = static_cast<std::uint16_t>(bin);
    if (!trees_[bin].Insert(block)) return;
    bits_[bin / 64] |= std::uint64_t{1} << bin % 64;
    words_ |= std::uint64_t{1} << bin / 64;
  }
  void Remove(Block* block) noexcept {
    const std::size_t bin = block->bin;
    if (!trees_[bin].Remove(block)) return;
    std::uint64_t& bits = bits_[bin / 64];
    bits &= ~(std::uint64_t{1} << bin % 64);
    words_ &= ~(std::uint64_t{bits == 0} << bin / 64);  // without a branch: whether it is taken nobody can predict
  }
  Block* AtLeast(std::size_t size) const noexcept {
    const std::size_t bin = BinOf(size);
    const bool holds_smaller = bin >= kExact;  // else all in the bin fit
    if (holds_smaller & (bits_[bin / 64] >> bin % 64)) {
      if (Block* const block = trees_[bin].AtLeast(size); block != nullptr) return block;
    }
    return FirstFrom(bin + holds_smaller);
  }
  Block* First() const noexcept { return empty() ? nullptr : trees_[LowestBin()].First(); }
  Block* Last() const noexcept;
  Block* Next(const Block* block) const noexcept {
    Block* const next = BlockTree<true>::Next(block);
    return next != nullptr ? next : FirstFrom(std::size_t{block->bin} + 1);
  }

  static std::size_t BinOf(std::size_t size) noexcept {
    const std::size_t units = size / kMinUnit < kMostUnits ? size / kMinUnit : kMostUnits;  // 128 GiB and more share the last bin
    // No branch: which way it would go nobody can predict. Below kExact there is a bin for each size.
    const unsigned octave = static_cast<unsigned>(std::bit_width(units | kPerOctave)) - 6;
    return kPerOctave * octave + (units >> octave);
  }

 private:
  static constexpr std::size_t kMinUnit = 512;
  static constexpr std::size_t kPerOctave = 32;
  static constexpr std::size_t kExact = 2 * kPerOctave;
  static constexpr std::size_t kMostUnits = (std::size_t{1} << 28) - 1;
  static constexpr std::size_t kBins = 768;
  static constexpr std::size_t kSmallBins = 257;  // up to 2 MiB

  std::size_t LowestBin() const noexcept {
    const std::size_t word = static_cast<std::size_t>(std::countr_zero(words_));
    return 64 * word + static_cast<std::size_t>(std::countr_zero(bits_[word]));
  }
  // The smallest block of that bin and those behind it.
  Block* FirstFrom(std::size_t bin) const noexcept {
    std::size_t word = bin / 64;
    std::uint64_t bits = bits_[word] & (~std::uint64_t{0} << bin % 64);
    if (bits == 0) {
      const std::uint64_t words = words_ & (~std::uint64_t{1} << word);
      if (words == 0) return nullptr;
      word = static_cast<std::size_t>(std::countr_zero(words));
      bits = bits_[word];
    }
    return trees_[64 * word + static_cast<std::size_t>(std::countr_zero(bits))].First();
  }

  BlockTree<true>* trees_ = nullptr;
  std::uint64_t words_ = 0;                  // which of `bits_` are not zero
  std::uint64_t bits_[kBins / 64 + 1] = {};  // which bins are not empty; behind the last there is none
};

// From the address of a block to its record, without a lock.
//
//   Owns      its tables; 16 KiB for each MiB of small segments, 16 bytes for each MiB of large ones, and 256 KiB for each 16 GiB touched.
//   Threads   Find from any thread at any time; Prepare, Put and Remove too: entries are atomic words, tables are added, never taken away.
//   Units     bytes. Addresses up to 2^49, as devices have; others are never found.
//   Errors    Init, to be called before all else, and Prepare answer false when host memory ran out or the range lies beyond 2^49.
//   Faults    makes no driver calls.
//
// Two live blocks of the large pool never begin in the same MiB, since each is larger than one; so one word per MiB is enough for them.

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
