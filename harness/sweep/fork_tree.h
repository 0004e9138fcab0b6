// SPDX-License-Identifier: MIT
// fork_tree.h: lists of faults as a tree in which what several lists begin with stands once.
//
//   Owns      its rows.
//   Threads   pure.
//   Errors    none; equal lists share a node, and the first one keeps it.
//   Faults    makes no driver calls.
//   Source    ours; rows become the nodes of faults/plan/fork_file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "faults/plan/fork_file.h"

namespace cuaudit::harness {

struct ForkRow {
  faults::Fault fault;
  std::uint32_t parent = 0;
  std::uint32_t first_child = 0;
  std::uint32_t children = 0;
  std::uint32_t depth = 0;
  std::uint32_t trial = faults::kNoTrial;  // index in `lists`
  bool control = false;                    // forked, and left without a fault
};

// Row 0 is the run without faults; the children of a row stand together, in the order of CompareWhere and otherwise as given.
[[nodiscard]] std::vector<ForkRow> PlantForks(const std::vector<std::vector<faults::Fault>>& lists);

// One fork at each of these places, without a fault; the trial of its row is the index in `points`.
[[nodiscard]] std::vector<ForkRow> PlantControls(const std::vector<faults::Fault>& points);

}  // namespace cuaudit::harness
