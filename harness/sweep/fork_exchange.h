// SPDX-License-Identifier: MIT
// fork_exchange.h: the tool's side of a fork file: makes it, sees who was forked, and reads what each wrote.
//
//   Owns      the file and its mapping, and a mapping of the journal of the run without faults. What Collect answers holds on to both.
//   Threads   one thread; the program and its forks write at the same time.
//   Units     records.
//   Errors    Status: no storage for the file.
//   Faults    makes no driver calls.
//   Source    faults/plan/fork_file.h.
//
// What a process had written when it forked is folded once, and a fork's ledger goes on from there: a trial costs what came after its
// fault.
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
#include "harness/sweep/fork_tree.h"
#include "harness/sweep/observation.h"

namespace cuaudit::harness {

class ForkExchange {
 public:
  struct Pools {
    std::uint32_t leaves = 2;  // processes at a time that fork no further
    std::uint32_t others = 1;  // of each depth above
  };

  // `journal`: the empty one that the run without faults is to fill.
  static Result<std::unique_ptr<ForkExchange>> Make(const std::string& path, const std::string& journal, const std::vector<ForkRow>& rows,
                                                    std::size_t records, const Pools& pools);
  ForkExchange(const ForkExchange&) = delete;
  ForkExchange& operator=(const ForkExchange&) = delete;
  ~ForkExchange();

  const faults::ForkHeader& header() const noexcept;
  const faults::ForkNode& node(std::uint32_t i) const noexcept;
  const faults::ForkSlot& slot(std::uint32_t i) const noexcept;

  // The process of `node` was seen, after all that its parent forked before it.
  void Follow(std::uint32_t node);
  // What it left behind, once it has ended: its journal begins with those of the processes that it was forked from. Of it `own` is what
  // came after the first fork.
  Observation Collect(std::uint32_t node, const Ending& ending);
  // The slot may be used again.
  void Free(std::uint32_t slot);

  // How many records were folded for all that was collected, and how many were copied for it.
  std::uint64_t folded() const noexcept { return folded_; }
  std::uint64_t copied() const noexcept { return copied_; }

 private:
  struct Mapping;
  struct Image;
  // The ledger of one process as far as the last of its forks.
  struct Account {
    std::unique_ptr<Folding> folding;  // null: its journal can only be folded whole
    std::uint64_t folded = 0;          // of its own records
  };
  struct Part {
    std::uint32_t node = 0;
    const faults::Record* records = nullptr;
    std::size_t count = 0;
  };
  ForkExchange();

  std::vector<Part> PartsOf(std::uint32_t node) const;  // from the run without faults on
  std::shared_ptr<Image> Put(const std::vector<Part>& parts, bool settled);

  std::string path_;
  std::shared_ptr<Mapping> mapping_;
  std::map<std::uint32_t, Account> accounts_;  // by slot; kNoSlot: the run without faults
  std::shared_ptr<Image> image_;               // of the journal that was collected last, whose beginning the next one may share
  std::uint64_t folded_ = 0;
  std::uint64_t copied_ = 0;
};

}  // namespace cuaudit::harness
