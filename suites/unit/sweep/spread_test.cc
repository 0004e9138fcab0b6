// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace cuaudit::harness::spread_test {
namespace {

// `trials` unwindings of one shape, each of `length` second faults.
std::vector<StoodFor> Rows(std::size_t trials, std::size_t length, std::uint64_t shape = 1) {
  std::vector<StoodFor> rows;
  for (std::size_t i = 0; i < trials * length; ++i) rows.push_back({shape, i / length});
  return rows;
}

std::size_t Tried(const std::vector<bool>& tried) { return static_cast<std::size_t>(std::count(tried.begin(), tried.end(), true)); }

TEST(Spread, OfFewNothingIsLeftOut) {
  EXPECT_EQ(Tried(Spread(Rows(4, 5), SpreadBudget(20, 128))), 20U);
  EXPECT_TRUE(Spread({}, 128).empty());
}

TEST(Spread, OfManyOneInTwentyIsTried) {
  EXPECT_EQ(SpreadBudget(100000, 128), 5000U);
  EXPECT_EQ(Tried(Spread(Rows(1000, 100), 5000)), 5000U);
  EXPECT_EQ(Tried(Spread(Rows(1000, 100), 0)), 0U);
}

TEST(Spread, EveryTrialGetsOneBeforeAnyGetsTwo) {
  const std::vector<bool> tried = Spread(Rows(30, 10), 45);
  for (std::size_t trial = 0; trial < 30; ++trial) {
    const auto first = tried.begin() + static_cast<std::ptrdiff_t>(trial * 10);
    const auto count = std::count(first, first + 10, true);
    EXPECT_GE(count, 1) << trial;
    EXPECT_LE(count, 2) << trial;
  }
}

TEST(Spread, ThePositionsOnTheWayBackTakeTurns) {
  const std::vector<bool> tried = Spread(Rows(40, 8), 20);
  std::set<std::size_t> positions;
  std::set<std::size_t> trials;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    if (!tried[i]) continue;
    positions.insert(i % 8);
    trials.insert(i / 8);
  }
  EXPECT_EQ(positions.size(), 8U);
  EXPECT_EQ(trials.size(), 20U);
  EXPECT_EQ(*trials.rbegin(), 39U) << "at equal distances, the last one among them";
}

TEST(Spread, EachShapeHasTurnsOfItsOwn) {
  std::vector<StoodFor> rows = Rows(6, 4, 1);
  for (StoodFor one : Rows(6, 4, 2)) {
    one.after += 6;
    rows.push_back(one);
  }
  const std::vector<bool> tried = Spread(rows, 12);
  for (const std::size_t begin : {0U, 24U}) {
    for (std::size_t trial = 0; trial < 6; ++trial) EXPECT_TRUE(tried[begin + trial * 4 + trial % 4]) << begin << ' ' << trial;
  }
}

}  // namespace
}  // namespace cuaudit::harness::spread_test
