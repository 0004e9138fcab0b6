// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/coverage.h"

#include <gtest/gtest.h>

#include <map>

namespace cuaudit::harness::coverage_test {
namespace {

using faults::Phase;

constexpr const char* kFault = "cuMemAlloc#1=OUT_OF_MEMORY,refuse";
constexpr std::uint64_t kSite = 7;

// Every trial with an even number fired.
report::Coverage Counted(const CoverageTable& table) {
  std::map<std::size_t, TrialResult> results;
  for (std::size_t trial = 0; trial < 8; ++trial) {
    results[trial].fired = trial % 2 == 0;
    if (!results[trial].fired) results[trial].missed = Missed::Elsewhere;
  }
  return table.Result(results, [](std::uint64_t site) {
    return report::Acquired{"cuMemAlloc", {{"prog", "f", "a.c", static_cast<int>(site), 0}}};
  });
}

TEST(Coverage, WhatASignalKeptFromBeingTriedWasNotReached) {
  CoverageTable table;
  table.Plan({kFault, kSite, Phase::Init, false}, 100);
  const report::Coverage coverage = Counted(table);
  EXPECT_EQ(coverage.reached, 0U);
  ASSERT_EQ(coverage.not_reached.size(), 1U);
  EXPECT_EQ(coverage.not_reached[0].why, Reason::Interrupted);
}

TEST(Coverage, PlacesErrorsWaysAndPhasesAreRowsOfTheirOwn) {
  const WayToFail ways[] = {{kFault, kSite, Phase::Init, false},
                            {kFault, kSite + 1, Phase::Init, false},
                            {"cuMemAlloc#1=INVALID_VALUE,refuse", kSite, Phase::Init, false},
                            {"cuMemAlloc#1=OUT_OF_MEMORY,after", kSite, Phase::Init, false},
                            {kFault, kSite, Phase::Work, false},
                            {kFault, kSite, Phase::Init, true}};
  CoverageTable table;
  for (const WayToFail& way : ways) table.Plan(way, 0);
  const report::Coverage coverage = Counted(table);
  EXPECT_EQ(coverage.reachable, 6U);
  EXPECT_EQ(coverage.reached, 6U);
  EXPECT_EQ(coverage.codes_tried, 2U);
  EXPECT_GE(coverage.codes_documented, coverage.codes_tried);
}

// What a comparison knows of the calls that were made to fail.
TEST(Coverage, WaysThatFiredAreCountedByFunctionAndPlace) {
  CoverageTable table;
  table.Plan({kFault, kSite, Phase::Init, false}, 0);
  table.Plan({kFault, kSite + 1, Phase::Init, false}, 2);
  table.Plan({kFault, kSite + 1, Phase::Work, false}, 2);
  table.Plan({kFault, kSite + 2, Phase::Init, false}, 1);
  table.Plan({kFault, kSite, Phase::Init, true}, 4);
  const report::Coverage coverage = Counted(table);
  ASSERT_EQ(coverage.tried.size(), 2U);
  EXPECT_EQ(coverage.tried[0].call, "cuMemAlloc");
  EXPECT_EQ(coverage.tried[0].code, "OUT_OF_MEMORY");
  EXPECT_EQ(coverage.tried[0].how, "refuse");
  EXPECT_EQ(coverage.tried[0].function, "f");
  EXPECT_EQ(coverage.tried[0].places, 2U) << "a place in two phases is one, and what did not fire is none";
  EXPECT_TRUE(coverage.tried[1].unwinding);
  EXPECT_EQ(coverage.tried[1].function, "") << "most stacks of those calls are not known";
}

TEST(Coverage, ARowIsReachedWhenOneOfItsTrialsFired) {
  CoverageTable table;
  table.Plan({"cuMemAlloc#2=OUT_OF_MEMORY,refuse", kSite, Phase::Init, false}, 1);
  table.Plan({"cuMemAlloc#3=OUT_OF_MEMORY,refuse", kSite, Phase::Init, false}, 2);
  EXPECT_EQ(Counted(table).reachable, 1U) << "one place, whichever turn";
  EXPECT_EQ(Counted(table).reached, 1U);
}

TEST(Coverage, WhatWasNotReachedSaysWhereAndWhy) {
  CoverageTable table;
  table.Plan({kFault, kSite, Phase::Teardown, true}, 1);
  table.LeaveOut({kFault, kSite + 1, Phase::Work, false}, Reason::BeyondLimit);
  table.LeaveOut({kFault, kSite + 2, Phase::Work, false}, Reason::BeyondLimit);
  table.Plan({kFault, kSite + 2, Phase::Work, false}, 2);
  const report::Coverage coverage = Counted(table);
  EXPECT_EQ(coverage.reached, 1U) << "left out once, tried after all";
  ASSERT_EQ(coverage.not_reached.size(), 2U);
  EXPECT_EQ(coverage.not_reached[0].missed, Missed::Elsewhere);
  EXPECT_EQ(coverage.not_reached[0].phase, "teardown");
  EXPECT_TRUE(coverage.not_reached[0].unwinding);
  EXPECT_EQ(coverage.not_reached[1].why, Reason::BeyondLimit);
  EXPECT_EQ(coverage.not_reached[1].stack.front().line, static_cast<int>(kSite + 1));
  EXPECT_EQ(report::PerMille(coverage), 333U);
}

}  // namespace
}  // namespace cuaudit::harness::coverage_test
