// SPDX-License-Identifier: MIT
// count_defects.h: into how many defects the findings of one trial without symbols are grouped (harness/defect).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/ledger/ledger.h"
#include "harness/ledger/rules.h"
#include "harness/verdict/judge.h"

namespace cuaudit::testing {

// What is wrong at one place.
struct WrongThing {
  harness::Rule rule{};
  driver::Kind kind{};
  std::uint64_t place = 0;  // where it was lost or shown
  std::uint64_t other = 0;  // the call that it collides with
};

[[nodiscard]] std::size_t CountDefects(const std::vector<WrongThing>& things);
[[nodiscard]] std::size_t CountDefects(const std::vector<harness::TrialFinding>& findings);
// Of what is left, or of what was done wrong.
[[nodiscard]] std::size_t CountLosses(const harness::Ledger& ledger);
[[nodiscard]] std::size_t CountViolations(const harness::Ledger& ledger);

}  // namespace cuaudit::testing
