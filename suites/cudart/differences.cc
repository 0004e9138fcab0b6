// SPDX-License-Identifier: MIT
#include "suites/cudart/differences.h"

namespace cuaudit::cudart {

std::vector<contract::Difference> AcceptedDifferences(bool genuine_driver) {
  std::vector<contract::Difference> accepted;
#define CUAUDIT_LIBRARY_DIFFERENCE(question, answer, reason) accepted.push_back({question, answer, reason});
#define CUAUDIT_DRIVER_DIFFERENCE(question, answer, reason) \
  if (!genuine_driver) accepted.push_back({question, answer, reason});
#include "suites/cudart/differences.def"
#undef CUAUDIT_LIBRARY_DIFFERENCE
#undef CUAUDIT_DRIVER_DIFFERENCE
  static_cast<void>(genuine_driver);
  return accepted;
}

}  // namespace cuaudit::cudart
