// SPDX-License-Identifier: MIT
// differences.h: the questions to which cuaudit's runtime answers differently from the genuine one, with the reasons (differences.def).
#pragma once

#include <vector>

#include "suites/contract/comparison.h"

namespace cuaudit::cudart {

// Differences of the runtime itself and, unless `genuine_driver`, those that come from the simulated driver.
std::vector<contract::Difference> AcceptedDifferences(bool genuine_driver);

}  // namespace cuaudit::cudart
