// SPDX-License-Identifier: MIT
// address_space.h: which allocation an address lies in, or last lay in; and which memory mapping of the process.
//
//   Owns      disjoint intervals. The numbers in its answers are indices into Ledger::objects.
//   Units     bytes.
//   Errors    a range that wraps around the end of the address space is cut there.
//
// Each insertion adds at most three intervals, so n operations cost O(n log n).
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory_resource>
#include <unordered_map>
#include <vector>

namespace cuaudit::harness {

// In a map of disjoint ranges by start, whose values have an `end`: the range that `address` lies in, or the next one.
template <typename Ranges>
auto RangeFrom(Ranges& ranges, std::uint64_t address) {
  const auto next = ranges.upper_bound(address);
  return next != ranges.begin() && std::prev(next)->second.end > address ? std::prev(next) : next;
}

class AddressSpace {
 public:
  explicit AddressSpace(std::pmr::memory_resource* memory = std::pmr::get_default_resource()) : pieces_(memory) {}

  // [base, base + bytes) belongs to `object` from now on; what was known about the range is forgotten. A range that overlaps live memory is
  // an intended alias (an import or a mapping), and the overlapping piece is never called dead.
  void Insert(std::uint64_t base, std::uint64_t bytes, std::int64_t object);
  // The allocation at `base` has ended. Its range is dead until the addresses have a new owner.
  void Kill(std::uint64_t base, std::uint64_t bytes, std::int64_t object);
  // Forgets everything about the range, because its new owner is not followed.
  void Forget(std::uint64_t base, std::uint64_t bytes);
  // The address `base` has a new owner, so the dead pieces of [base, base + bytes) are forgotten. With `bytes` 0 the length is unknown, and
  // all dead pieces from `base` up to the first gap are forgotten. Live pieces stay.
  void ForgetDead(std::uint64_t base, std::uint64_t bytes);
  // The released allocation that `address` lies in; -1 when the address is live or unknown.
  std::int64_t DeadObjectAt(std::uint64_t address) const;
  // The allocation that `address` lies in, released or live; -1 when unknown.
  std::int64_t ObjectAt(std::uint64_t address) const;
  // A live object that has a part of [base, base + bytes); -1 for none.
  std::int64_t LiveObjectIn(std::uint64_t base, std::uint64_t bytes) const;
  // Changes whenever an allocation ends. A check that found nothing need not be repeated while this value stays the same.
  std::uint64_t deaths() const { return deaths_; }
  // Code that a launch may need has ended: a module or a library.
  void CountDeath() { ++deaths_; }

 private:
  struct Piece {
    std::uint64_t end = 0;
    std::int64_t object = -1;
    bool dead = false;
    bool aliased = false;
  };
  using Pieces = std::pmr::map<std::uint64_t, Piece>;

  // Makes `address` a boundary between pieces.
  void Split(std::uint64_t address);

  Pieces pieces_;
  std::uint64_t deaths_ = 0;
};

// Which memory mapping of the process each address belongs to, also after parts were unmapped or mapped over.
//
//   Units     bytes.
//   Errors    unmapping an unknown range has no effect.
//   Source    mmap(2): a fixed mapping replaces what it covers; munmap may take a part of a mapping, or parts of several.
class HostMappings {
 public:
  // Both functions answer the objects that have no addresses left afterwards.
  std::vector<std::int64_t> Map(std::uint64_t start, std::uint64_t bytes, std::int64_t object);
  std::vector<std::int64_t> Unmap(std::uint64_t start, std::uint64_t bytes);

 private:
  struct Piece {
    std::uint64_t end = 0;
    std::int64_t object = -1;
  };
  std::map<std::uint64_t, Piece> pieces_;  // by start, without overlaps
  std::unordered_map<std::int64_t, std::uint64_t> left_;
};

}  // namespace cuaudit::harness
