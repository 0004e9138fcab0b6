// SPDX-License-Identifier: MIT
// case.h: a test that also counts as the planted or the positive case of a rule, so that a rule without one is noticed by name.
//
//   CUAUDIT_CASE(rule, name) { ... }   defines TEST(rule, name) and registers the rule
//   Owns      the set of rules that this executable has cases for.
//   Threads   filled before main.
//   Errors    a rule without a case fails EveryRule.HasACase (completeness_test.cc).
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/ledger/rules.h"
#include "suites/unit/ledger/trace.h"

namespace cuaudit::testing {

inline std::set<harness::Rule>& RulesWithCases() {
  static std::set<harness::Rule> rules;
  return rules;
}

inline bool RegisterCase(harness::Rule rule) {
  RulesWithCases().insert(rule);
  return true;
}

}  // namespace cuaudit::testing

#define CUAUDIT_CASE(rule, name)                                                                                             \
  [[maybe_unused]] const bool registered_##rule##_##name = ::cuaudit::testing::RegisterCase(::cuaudit::harness::Rule::rule); \
  TEST(rule, name)
