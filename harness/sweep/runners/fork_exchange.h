// SPDX-License-Identifier: MIT
// fork_exchange.h: the tool's side of a fork file: creates the file, finds out which forks exist, and reads their journals.
//
//   Owns      the file and its mapping, and a mapping of the fault-free run's journal. Answers of Collect keep both alive.
//   Threads   one thread; the program and its forks write at the same time.
//   Units     records.
//   Errors    Status: no storage for the file.
//   Source    faults/plan/fork_file.h.
//
// In the tree (fork_control.h) equal lists share a node, which belongs to the first of them. What processes write in the file is read once
// and checked before it is used: a program may write over it at any time. The records of a process before a fork are folded once, and the
// fork's ledger continues from there. A trial therefore costs only what comes after its fault.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "faults/plan/fork_file.h"
#include "harness/ledger/folding.h"
#include "harness/sweep/run/observation.h"

namespace cuaudit::harness {

class ForkExchange {
 public:
  struct Pools {
    std::uint32_t leaves = 2;  // processes at a time that fork no further
    std::uint32_t others = 1;  // processes at a time at each depth above
  };

  // `journal` is the empty journal that the fault-free run will fill.
  static Result<std::unique_ptr<ForkExchange>> Make(const std::string& path, const std::string& journal,
                                                    const std::vector<faults::ForkNode>& nodes, std::size_t records, const Pools& pools);
  ForkExchange(const ForkExchange&) = delete;
  ForkExchange& operator=(const ForkExchange&) = delete;
  ~ForkExchange();

  // As they were made. The processes can write over all that they share with the tool.
  const faults::ForkHeader& header() const noexcept;
  const faults::ForkNode& node(std::uint32_t i) const noexcept;
  const faults::ForkSlot& slot(std::uint32_t i) const noexcept;

  // What the processes have noted of a fork.
  struct Fork {
    std::uint32_t node = 0;  // 0: there is none; kNobody: no process of this run has noted it
    std::uint32_t slot = faults::kNoSlot;
    std::uint32_t parent_slot = faults::kNoSlot;
    std::uint64_t parent_records = 0;
    pid_t pid = 0;  // 0: not noted yet
    bool operator==(const Fork&) const = default;
  };
  static constexpr std::uint32_t kNobody = 0xffffffffU;
  // The fork in this slot, as it is noted now.
  Fork Noted(std::uint32_t slot) const;
  // False: a fork of this node, which the tool has not followed yet, cannot be what is noted here. The one of its parent has been followed.
  bool Fits(const Fork& noted, std::uint32_t slot) const;
  // True when the process in this slot waits for another one; kNoSlot: the fault-free run.
  bool Waits(std::uint32_t slot) const;
  // Why no process forked at this node.
  faults::ForkRefusal Refusal(std::uint32_t node) const;

  // Keeps what is noted of a fork. Earlier forks of its parent must have been followed before.
  void Follow(const Fork& noted);
  // What was followed; its node is 0 when nothing was.
  const Fork& fork(std::uint32_t node) const noexcept { return forks_[node]; }
  // False when a process has written over what the tool has made, or over what was noted of this node or its journal. Nothing in it is
  // evidence then. Node 0: what was noted of no node is asked for.
  bool Whole(std::uint32_t node) const;
  // The evidence of an ended process. Its journal begins with those of its ancestors; its own records start at the first fork.
  Observation Collect(std::uint32_t node, const Ending& ending);
  // The slot may be reused.
  void Free(std::uint32_t slot);

  // Number of records folded and copied for all answers of Collect.
  std::uint64_t folded() const noexcept { return folded_; }
  std::uint64_t copied() const noexcept { return copied_; }

 private:
  struct Mapping;
  struct Image;
  // The ledger of one process up to its last fork.
  struct Account {
    std::unique_ptr<Folding> folding;  // null: the journal can only be folded as a whole
    std::uint64_t folded = 0;          // number of its own records in `copy`
    std::shared_ptr<Image> copy;       // of its own records; null: it has not forked
    std::shared_ptr<Image> above;      // of the records of its parent
  };
  struct Part {
    std::uint32_t node = 0;
    const faults::Record* records = nullptr;
    std::size_t count = 0;
  };
  ForkExchange();

  std::vector<Part> PartsOf(std::uint32_t node) const;  // beginning with the fault-free run
  std::shared_ptr<Image> Put(const std::vector<Part>& parts, bool settled);

  std::string path_;
  std::shared_ptr<Mapping> mapping_;
  std::vector<Fork> forks_;                    // by node
  std::map<std::uint32_t, Account> accounts_;  // by slot; kNoSlot: the fault-free run
  std::shared_ptr<Image> image_;               // the last collected journal; the next one may share its beginning
  std::uint64_t folded_ = 0;
  std::uint64_t copied_ = 0;
};

}  // namespace cuaudit::harness
