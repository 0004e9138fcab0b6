// SPDX-License-Identifier: MIT
// Linked into the planted and into the positive suite: each must have a case for every rule. What there is to have cases for is written
// down as well, for scripts/gen_kill_matrix.py, which asks the same of kinds.
#include <cuda.h>

#include <string>

#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"

namespace cuaudit::testing::completeness_test {
namespace {

TEST(EveryRule, HasACase) {
  std::string rules;
  for (std::size_t i = 0; i < harness::kRuleCount; ++i) {
    const auto rule = static_cast<harness::Rule>(i);
    if (harness::Row(rule).level == harness::Level::Told) continue;  // no rule of the ledger
    EXPECT_EQ(RulesWithCases().count(rule), 1U) << "rule '" << harness::Name(rule) << "' has no case in this suite";
    const harness::RuleRow& row = harness::Row(rule);
    rules.append(rules.empty() ? "" : ";").append(harness::Name(rule));
    rules.append(row.level == harness::Level::Finding ? "=finding=" : "=note=").append(row.title);
  }
  RecordProperty("rules", rules);
}

TEST(EveryKind, IsWrittenDown) {
  std::string kinds;
  for (const driver::Kind kind : LeakableKinds()) {
    const bool dies = driver::DiesWithOf(kind) == driver::DiesWith::Context;
    kinds.append(kinds.empty() ? "" : ";").append(driver::Name(kind)).append(dies ? "=context" : "=process");
    kinds.append(IsHostKind(kind) ? "=host" : "=driver");
  }
  EXPECT_FALSE(kinds.empty());
  RecordProperty("kinds", kinds);
  RecordProperty("toolkit", CUDA_VERSION);
}

}  // namespace
}  // namespace cuaudit::testing::completeness_test
