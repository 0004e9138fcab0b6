// SPDX-License-Identifier: MIT
// fork_control.h: the tree of forks, and what the tool makes sure of before it trusts a fork: that a fork of the program, without any
// fault, ends exactly as the program does (the A/A test of isolation by fork), and whether a program that a fork executes called the
// driver.
//
//   Owns      a copy of the rehearsal's ledger, and one journal for each slot, which it removes. Borrows the rehearsal's journal, whose bytes
//             must outlive it.
//   Threads   one thread; executed programs write at the same time.
//   Units     records.
//   Errors    Status: no storage, or too many slots. A difference is described in one line.
//   Source    faults/plan/fork_file.h.
//
// README.md ("What a trial runs in") says why copies are forked and why what a fork executes has a journal of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "faults/journal/journal_file.h"
#include "harness/process/files.h"
#include "harness/process/status.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/runners/fork_exchange.h"

namespace cuaudit::harness {

// Node 0 is the fault-free run. The children of a node are adjacent, in the order of CompareWhere and otherwise as given. The trial of a
// node is an index in `lists`.
[[nodiscard]] std::vector<faults::ForkNode> PlantForks(const std::vector<std::vector<faults::Fault>>& lists);

// One fork without a fault at each of these places. The trial of a node is the index in `points`.
[[nodiscard]] std::vector<faults::ForkNode> PlantControls(const std::vector<faults::Fault>& points);

// The calls at which to fork, in the order of the rehearsal; at most five.
[[nodiscard]] std::vector<faults::Fault> ControlPoints(const Evidence& rehearsal);

static_assert(static_cast<std::size_t>(Reason::ForkAlwaysWiped) - static_cast<std::size_t>(Reason::NotReached) + 1 ==
              faults::kForkRefusals);
constexpr Reason ReasonOf(faults::ForkRefusal refusal) {
  return static_cast<Reason>(static_cast<std::size_t>(Reason::NotReached) + static_cast<std::size_t>(refusal));
}

// The first difference between `copy` and `expected`, as one line; empty when there is none. Compared are the ending, the driver calls with
// results and call stacks, what the program declared, and the leftovers and violations of the ledger.
[[nodiscard]] Details DifferenceFrom(const Evidence& expected, const Observation& copy, std::uint64_t deadline_ms);

class ForkControl {
 public:
  explicit ForkControl(const Observation& rehearsal);

  const std::vector<faults::Fault>& points() const noexcept { return points_; }
  // Takes the run of the copy forked at a point, and the run of the process that forked the copies.
  void TakeCopy(std::size_t point, const Observation& copy, std::uint64_t deadline_ms);
  void TakeTrunk(const Observation& trunk, std::uint64_t deadline_ms);
  // Why nothing may be forked; no reason when copies were forked and none differed. `refusals` holds per point why no copy was forked
  // there.
  [[nodiscard]] Because WhyNot(const std::vector<faults::ForkRefusal>& refusals) const;

 private:
  const faults::JournalView journal_;
  const Ledger ledger_;
  const Ending ending_;
  const std::vector<faults::Fault> points_;
  struct Seen {
    bool forked = false;
    Details difference;
  };
  std::vector<Seen> seen_;  // by point
  Details of_trunk_;
};

class ForkImages {
 public:
  // The journal of the fault-free run: PATH/NAME becomes PATH/NAME-0000.journal.
  static std::string Trunk(const std::string& name);

  ForkImages() = default;
  ForkImages(const ForkImages&) = delete;
  ForkImages& operator=(const ForkImages&) = delete;
  ~ForkImages() { Remove(); }

  // Makes the journals of slots 0 to `slots` - 1.
  Status Make(const std::string& name, std::uint32_t slots, const faults::JournalOptions& options);
  // True when the program executed in this slot made a driver call.
  bool Called(std::uint32_t slot) const;
  // Empties the journal before another process gets the slot.
  Status Renew(std::uint32_t slot);
  void Remove();

 private:
  struct Image {
    std::string path;
    FileDescriptor file;  // of the first slots: open, because it is read for every trial
  };
  Status Create(std::uint32_t slot);
  template <typename T>
  bool Read(std::uint32_t slot, std::size_t at, T* to) const;

  std::vector<Image> images_;
  faults::JournalOptions options_;
};

}  // namespace cuaudit::harness
