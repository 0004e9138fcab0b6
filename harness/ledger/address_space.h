// SPDX-License-Identifier: MIT
// address_space.h: which allocation an address lies in, or last lay in.
//
//   Owns      disjoint intervals; the numbers it answers are indices into Ledger::objects.
//   Threads   a value; no shared state.
//   Units     bytes.
//   Errors    a range that wraps around the end of the address space is cut there.
//   Faults    makes no driver calls.
//   Source    ours. Each insertion adds at most three intervals, so n operations cost O(n log n).
#pragma once

#include <cstdint>
#include <map>

namespace cuaudit::harness {

class AddressSpace {
 public:
  // [base, base + bytes) belongs to `object` from now on; what was known about the range is forgotten. A range that overlaps memory
  // still alive is aliased on purpose (imports, mappings): such a piece is never called dead.
  void Insert(std::uint64_t base, std::uint64_t bytes, std::int64_t object);
  // The allocation at `base` is gone; later reads of its range are stale until somebody else gets it.
  void Kill(std::uint64_t base, std::uint64_t bytes, std::int64_t object);
  // Nothing is known about the range any more: the addresses belong to somebody whom we do not follow.
  void Forget(std::uint64_t base, std::uint64_t bytes);
  // Somebody new answers for `base`: what was called dead in [base, base + bytes) is forgotten; of a length that we do not know
  // (bytes 0), everything dead from `base` on without a gap. What is alive stays as it is.
  void ForgetDead(std::uint64_t base, std::uint64_t bytes);
  // The released allocation that `address` lies in, -1 when it lies in a live one or in none we know.
  std::int64_t DeadObjectAt(std::uint64_t address) const;
  // The same, whether released or alive.
  std::int64_t ObjectAt(std::uint64_t address) const;
  // A live object that has a part of [base, base + bytes), -1 for none.
  std::int64_t LiveObjectIn(std::uint64_t base, std::uint64_t bytes) const;
  // Changes whenever an allocation dies: what was clean at this value is clean until it changes.
  std::uint64_t deaths() const { return deaths_; }

 private:
  struct Piece {
    std::uint64_t end = 0;
    std::int64_t object = -1;
    bool dead = false;
    bool aliased = false;
  };
  using Pieces = std::map<std::uint64_t, Piece>;

  // Makes `address` a boundary between pieces.
  void Split(std::uint64_t address);

  Pieces pieces_;
  std::uint64_t deaths_ = 0;
};

}  // namespace cuaudit::harness
