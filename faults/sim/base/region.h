// SPDX-License-Identifier: MIT
// region.h: address space: which part of it is free, and which live interval contains an address.
//
//   Owns      nothing; the mappings belong to the world's shell.
//   Threads   not thread-safe; the caller holds the world's lock.
//   Units     bytes; blocks are aligned to 512, or to 2 MiB if they are at least that large.
//   Errors    nullptr when no hole is large enough or the arena is full.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/driver/kinds.h"
#include "faults/sim/base/arena.h"
#include "faults/sim/base/object.h"

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

// Every address interval that the driver knows, found from any address inside it.
//
//   Owns      nothing; ranges belong to the arena, and the tree links them.
//   Units     bytes.
//   Errors    Find returns nullptr; Insert returns false when the interval overlaps a known one.

inline constexpr int kMaxDevices = 8;

struct History;
struct External;
struct Import;
struct Managed;
struct GraphMemory;
struct Pool;
struct Physical;

struct Range {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  char* bytes = nullptr;                   // where the bytes lie in this process
  driver::Kind kind = driver::Kind::None;  // None: internal, such as a module's globals
  bool on_device = false;                  // CU_MEMORYTYPE_DEVICE
  bool host_visible = false;               // clients may dereference it
  bool managed_global = false;             // a __managed__ variable of a module; managed allocations have their kind instead
  bool freeing = false;                    // a stream-ordered free is queued
  bool accessible = true;                  // false: mapped, but no device was granted access
  bool sync_memops = false;                // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  std::uint32_t flags = 0;                 // flags of the call that made it
  std::uint64_t id = 0;                    // CU_POINTER_ATTRIBUTE_BUFFER_ID
  bool chunked = false;                    // its block is charged in chunks (memory.h)
  std::uint64_t charged = 0;               // bytes taken from a pool
  std::uint64_t asked = 0;                 // bytes the client asked for
  Block* block = nullptr;
  Region* region = nullptr;
  Context* owner = nullptr;
  Pool* pool = nullptr;
  GraphMemory* graph = nullptr;  // if a graph owns the memory
  Physical* physical = nullptr;
  Managed* managed = nullptr;                 // cuMemAdvise settings of its parts; null: none
  std::uint8_t access[kMaxDevices + 1] = {};  // of a mapping: CUmemAccess_flags for each device, the host last
  std::uint32_t share = 0;                    // slot in share.h if other processes may open it
  External* external = nullptr;               // the external memory that holds the bytes
  Import* import = nullptr;                   // the import, if another process owns the bytes
  History* history = nullptr;                 // accesses so far
  Range* next = nullptr;                      // next in the owner's list
  Range* previous = nullptr;
  Range* left = nullptr;
  Range* right = nullptr;
};

class RangeTree {
 public:
  Range* Find(std::uint64_t address) const noexcept {
    Range* best = nullptr;
    for (Range* at = root_; at != nullptr;) {
      if (at->base <= address) {
        best = at;
        at = at->right;
      } else {
        at = at->left;
      }
    }
    return best != nullptr && address - best->base < best->size ? best : nullptr;
  }
  // The first range at or above the address.
  Range* FirstFrom(std::uint64_t address) const noexcept;
  bool Insert(Range* range) noexcept;
  void Remove(Range* range) noexcept;

 private:
  Range* root_ = nullptr;
};

}  // namespace cuaudit::sim
