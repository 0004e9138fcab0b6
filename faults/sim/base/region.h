// SPDX-License-Identifier: MIT
// region.h: allocates address space from one interval and merges free neighbours. A world has one region for device memory and one for
// memory that the host may access.
//
//   Owns      nothing; the mappings belong to the world's shell.
//   Threads   not thread-safe; the caller holds the world's lock.
//   Units     bytes; blocks are aligned to 512, or to 2 MiB if they are at least that large.
//   Errors    nullptr when no hole is large enough or the arena is full.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/sim/base/arena.h"

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
  // Clients get addresses from `visible` on; the bytes lie at `bytes`. Clients cannot dereference addresses of device memory.
  bool Adopt(Arena& arena, char* visible, char* bytes, std::size_t size) noexcept;
  Block* Allocate(Arena& arena, std::uint64_t bytes) noexcept;
  void Free(Arena& arena, Block* block) noexcept;
  char* Bytes(std::uint64_t address) const noexcept { return bytes_ + (address - base_); }
  bool Contains(std::uint64_t address) const noexcept { return address - base_ < size_; }
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t base() const noexcept { return base_; }
  char* bytes() const noexcept { return bytes_; }
  // No block has ever ended above base + used.
  std::uint64_t used() const noexcept { return used_; }

 private:
  static constexpr int kBins = 48;
  static int BinOf(std::uint64_t size) noexcept;
  void Link(Block* block) noexcept;
  void Unlink(Block* block) noexcept;
  Block* Split(Arena& arena, Block* block, std::uint64_t head) noexcept;

  std::uint64_t base_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t used_ = 0;
  char* bytes_ = nullptr;
  Block* bins_[kBins] = {};
};

}  // namespace cuaudit::sim
