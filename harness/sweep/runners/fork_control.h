// SPDX-License-Identifier: MIT
// fork_control.h: checks that a fork of the program, without any fault, ends exactly as the program does. This is the A/A test of isolation
// by fork.
//
//   Owns      a copy of the rehearsal's ledger. Borrows its journal, whose bytes must outlive it.
//   Threads   one thread.
//   Errors    none: a difference is described in one line.
//
// Copies are forked at a few calls, the first and the last among them, and the process that forks them is checked as well. A program that
// remembers its process id, or that does something outside itself that can be done only once, behaves differently in a fork, and findings
// there would be caused by the fork. The check covers only these calls, and only what the program does after them without a fault.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/sweep/run/observation.h"
#include "harness/sweep/runners/fork_tree.h"

namespace cuaudit::harness {

// The calls at which to fork, in the order of the rehearsal; at most five.
[[nodiscard]] std::vector<faults::Fault> ControlPoints(const Evidence& rehearsal);

// The first difference between `copy` and `expected` in one line; empty when there is none. Compared are the ending, the driver calls with
// results and call stacks, what the program declared, and the leftovers and violations of the ledger.
[[nodiscard]] std::string DifferenceFrom(const Evidence& expected, const Observation& copy, std::uint64_t deadline_ms);

class ForkControl {
 public:
  explicit ForkControl(const Observation& rehearsal);

  const std::vector<faults::Fault>& points() const noexcept { return points_; }
  // Takes the run of the copy forked at a point, and the run of the process that forked the copies.
  void TakeCopy(std::size_t point, const Observation& copy, std::uint64_t deadline_ms);
  void TakeTrunk(const Observation& trunk, std::uint64_t deadline_ms);
  // Why nothing may be forked; empty when copies were forked and none differed. `refusals` holds per point why no copy was forked there.
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
  std::vector<Seen> seen_;  // by point
  std::string of_trunk_;
};

}  // namespace cuaudit::harness
