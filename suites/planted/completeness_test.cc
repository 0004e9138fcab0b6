// SPDX-License-Identifier: MIT
// Linked into the planted and into the positive suite: each must have a case for every rule.
#include "suites/planted/case.h"

namespace cuaudit::testing {
namespace {

TEST(EveryRule, HasACase) {
  for (std::size_t i = 0; i < harness::kRuleCount; ++i) {
    const auto rule = static_cast<harness::Rule>(i);
    // Growth compares two runs of a program and is raised by harness/cycle, which has its own cases.
    if (rule == harness::Rule::Growth) continue;
    // What is declared is known to a sweep only; suites/e2e/depth_test.cc has both cases.
    if (rule == harness::Rule::BenignFailed || rule == harness::Rule::BenignNeverFired) continue;
    EXPECT_EQ(RulesWithCases().count(rule), 1U) << "rule '" << harness::Name(rule) << "' has no case in this suite";
  }
}

}  // namespace
}  // namespace cuaudit::testing
