// SPDX-License-Identifier: MIT
// fork_control.h: whether a forked copy of the program, left without any fault, ends exactly as the program does: the A/A arm of isolation
// by fork.
//
//   Owns      a copy of the rehearsal's ledger; borrows its journal, whose bytes must outlive it.
//   Threads   one thread.
//   Errors    none: what differs is said in one line.
//   Faults    makes no driver calls.
//
// Copies are forked at a few calls, the first and the last among them, and so is what they are forked from looked at. A program that
// remembers its process id, or that may do a thing only once outside itself, is another one in a forked copy: what is found there would be
// the fork's doing. Seen is what the program does between a fork and its end without a fault, at these calls only.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/sweep/fork_tree.h"
#include "harness/sweep/observation.h"

namespace cuaudit::harness {

// The calls to fork at, in the order of the rehearsal; at most five.
[[nodiscard]] std::vector<faults::Fault> ControlPoints(const Evidence& rehearsal);

// What `copy` did or left otherwise than `expected`, in one line; empty: nothing. Compared: how it ended, the driver calls with their
// results and call stacks, what the program declared, and what the ledger says it left behind or did wrong.
[[nodiscard]] std::string DifferenceFrom(const Evidence& expected, const Observation& copy, std::uint64_t deadline_ms);

class ForkControl {
 public:
  explicit ForkControl(const Observation& rehearsal);

  const std::vector<faults::Fault>& points() const noexcept { return points_; }
  // What was seen of the copy forked at a point, and of the program itself.
  void TakeCopy(std::size_t point, const Observation& copy, std::uint64_t deadline_ms);
  void TakeTrunk(const Observation& trunk, std::uint64_t deadline_ms);
  // Why nothing is to be forked; empty: copies were forked, and none differed. `refusals`: per point why no copy was forked there.
  [[nodiscard]] std::string WhyNot(const std::vector<faults::ForkRefusal>& refusals) const;

 private:
  const faults::JournalView journal_;
  const Ledger ledger_;
  const Ending ending_;
  const std::vector<faults::Fault> points_;
  struct Seen {
    bool forked = false;
    std::string difference;
  };
  std::vector<Seen> seen_;  // per point
  std::string of_trunk_;
};

}  // namespace cuaudit::harness
