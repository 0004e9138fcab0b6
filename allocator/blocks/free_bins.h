// SPDX-License-Identifier: MIT
// free_bins.h: free blocks ordered by size, then address: the smallest that fits, and of those the lowest, in a few instructions.
//
//   Owns      the table of bins; the blocks are the arena's, and the links in them are theirs: a block stands in one set at a time.
//   Threads   not thread-safe; the arena's lock guards it.
//   Units     bytes, multiples of 512.
//   Errors    Init answers false when host memory ran out; nothing else asks for any.
//
// A bin holds the blocks of one size below 32 KiB, of a 32nd of an octave beyond. A bit per bin tells which are not empty. Within a bin
// the blocks are a balanced tree, mostly of one or two: ten thousand free blocks of one size cost a search of fourteen steps.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "allocator/blocks/block.h"

namespace cuaudit::alloc {

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

}  // namespace cuaudit::alloc
