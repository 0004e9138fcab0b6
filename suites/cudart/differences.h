// SPDX-License-Identifier: MIT
// differences.h: where the drop-in runtime answers otherwise than the genuine one, and why.
//
//   Owns      nothing.
//   Threads   no state.
//   Errors    none.
//   Faults    makes no calls.
//   Source    differences.def.
#pragma once

#include <vector>

#include "suites/contract/comparison.h"

namespace cuaudit::cudart {

// Those of the library itself, and those that come from the simulated driver unless `genuine_driver`.
std::vector<contract::Difference> AcceptedDifferences(bool genuine_driver);

}  // namespace cuaudit::cudart
