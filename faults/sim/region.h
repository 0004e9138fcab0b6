// SPDX-License-Identifier: MIT
// region.h: address-space allocation with neighbours that merge: device memory, and memory that the host may touch.
//
//   Owns      one reservation that clients see, and for device memory a second one where the bytes really are.
//   Threads   not thread-safe; the world's lock is held by every caller.
//   Units     bytes; blocks are aligned to 512, or to 2 MiB when they are that large.
//   Errors    nullptr when no hole is large enough or the books are full.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/sim/arena.h"

namespace cuaudit::sim {

struct Block {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  bool free = false;
  Block* before = nullptr;  // neighbours by address
  Block* after = nullptr;
  Block* bin_next = nullptr;
  Block* bin_previous = nullptr;
};

class Region {
 public:
  // hidden: clients get addresses they cannot dereference; the bytes lie elsewhere.
  bool Map(Arena& arena, std::size_t bytes, bool hidden) noexcept;
  void Unmap() noexcept;
  Block* Allocate(Arena& arena, std::uint64_t bytes) noexcept;
  void Free(Arena& arena, Block* block) noexcept;
  char* Bytes(std::uint64_t address) const noexcept { return bytes_ + (address - base_); }
  bool Contains(std::uint64_t address) const noexcept { return address - base_ < size_; }
  std::uint64_t size() const noexcept { return size_; }

 private:
  static constexpr int kBins = 48;
  static int BinOf(std::uint64_t size) noexcept;
  void Link(Block* block) noexcept;
  void Unlink(Block* block) noexcept;
  Block* Split(Arena& arena, Block* block, std::uint64_t head) noexcept;

  std::uint64_t base_ = 0;
  std::uint64_t size_ = 0;
  char* visible_ = nullptr;
  char* bytes_ = nullptr;
  Block* bins_[kBins] = {};
};

}  // namespace cuaudit::sim
