// SPDX-License-Identifier: MIT
// fork_exchange.h: the tool's side of a fork file. Arranges lists of faults as a tree, in which a common beginning of several lists stands
// once, creates the file, finds out which forks exist, and reads their journals.
//
//   Owns      the file and its mapping, and a mapping of the fault-free run's journal. Answers of Collect keep both alive.
//   Threads   one thread; the program and its forks write at the same time.
//   Units     records.
//   Errors    Status: no storage for the file.
//   Source    faults/plan/fork_file.h.
//
// The rows of the tree become the nodes of the file. Equal lists share a node, which belongs to the first list. The records of a process
// before a fork are folded once, and the fork's ledger continues from there. A trial therefore costs only what comes after its fault.
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

struct ForkRow {
  faults::Fault fault;
  std::uint32_t parent = 0;
  std::uint32_t first_child = 0;
  std::uint32_t children = 0;
  std::uint32_t depth = 0;
  std::uint32_t trial = faults::kNoTrial;  // index in `lists`
  bool control = false;                    // a fork without a fault
};

// Row 0 is the fault-free run. The children of a row are adjacent, in the order of CompareWhere and otherwise as given.
[[nodiscard]] std::vector<ForkRow> PlantForks(const std::vector<std::vector<faults::Fault>>& lists);

// One fork without a fault at each of these places. The trial of a row is the index in `points`.
[[nodiscard]] std::vector<ForkRow> PlantControls(const std::vector<faults::Fault>& points);

class ForkExchange {
 public:
  struct Pools {
    std::uint32_t leaves = 2;  // processes at a time that fork no further
    std::uint32_t others = 1;  // processes at a time at each depth above
  };

  // `journal` is the empty journal that the fault-free run will fill.
  static Result<std::unique_ptr<ForkExchange>> Make(const std::string& path, const std::string& journal, const std::vector<ForkRow>& rows,
                                                    std::size_t records, const Pools& pools);
  ForkExchange(const ForkExchange&) = delete;
  ForkExchange& operator=(const ForkExchange&) = delete;
  ~ForkExchange();

  const faults::ForkHeader& header() const noexcept;  // as it was made
  const faults::ForkHeader& live() const noexcept;    // with the counters as the processes have set them
  const faults::ForkNode& node(std::uint32_t i) const noexcept;
  const faults::ForkSlot& slot(std::uint32_t i) const noexcept;

  // Notes the process of `node`. Earlier forks of its parent must have been noted before.
  void Follow(std::uint32_t node);
  // False when a process has written over the memory that all share or over the journal of this node. Nothing in it is evidence then.
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
    std::uint64_t folded = 0;          // number of its own records folded
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
  std::map<std::uint32_t, Account> accounts_;  // by slot; kNoSlot: the fault-free run
  std::shared_ptr<Image> image_;               // the last collected journal; the next one may share its beginning
  std::uint64_t folded_ = 0;
  std::uint64_t copied_ = 0;
};

}  // namespace cuaudit::harness
