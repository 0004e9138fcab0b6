// SPDX-License-Identifier: MIT
// kind_cases.h: for every kind that a call acquires, the shortest lifecycle of one object.
//
//   Owns      a constant table.
//   Threads   safe everywhere; no state.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0.
#pragma once

#include <vector>

#include "faults/driver/kinds.h"
#include "suites/unit/ledger/trace.h"

namespace cuaudit::testing {

struct KindCase {
  driver::Kind kind;
  void (*acquire)(Trace&);
  void (*release)(Trace&);
};

const std::vector<KindCase>& KindCases();

// Kinds that some entry point or host call acquires and that do not merely die with their parent.
std::vector<driver::Kind> LeakableKinds();

}  // namespace cuaudit::testing
