// SPDX-License-Identifier: MIT
// fork_exchange.h: the tool's side of a fork file: makes it, sees who was forked, and reads what each wrote.
//
//   Owns      the file and its mapping, and a mapping of the journal of the run without faults. What Collect answers holds on to both.
//   Threads   one thread; the program and its forks write at the same time.
//   Units     records.
//   Errors    Status: no storage for the file.
//   Faults    makes no driver calls.
//   Source    faults/plan/fork_file.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "faults/plan/fork_file.h"
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

  // What the process of `node` left behind, once it has ended: its journal begins with those of the processes that it was forked from.
  Observation Collect(std::uint32_t node, const Ending& ending) const;
  // The slot may be used again.
  void Free(std::uint32_t slot);

 private:
  struct Mapping;
  ForkExchange() = default;

  std::string path_;
  std::shared_ptr<Mapping> mapping_;
};

}  // namespace cuaudit::harness
