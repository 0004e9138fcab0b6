// SPDX-License-Identifier: MIT
// fork_tree.h: arranges lists of faults as a tree, in which a common beginning of several lists stands once.
//
//   Errors    none. Equal lists share a node, which belongs to the first list.
//
// The rows become the nodes of faults/plan/fork_file.h.
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
  bool control = false;                    // a fork without a fault
};

// Row 0 is the fault-free run. The children of a row are adjacent, in the order of CompareWhere and otherwise as given.
[[nodiscard]] std::vector<ForkRow> PlantForks(const std::vector<std::vector<faults::Fault>>& lists);

// One fork without a fault at each of these places. The trial of a row is the index in `points`.
[[nodiscard]] std::vector<ForkRow> PlantControls(const std::vector<faults::Fault>& points);

}  // namespace cuaudit::harness
