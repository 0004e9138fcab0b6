// SPDX-License-Identifier: MIT
// A leak or a cache that fills: counts made for the purpose, followed from 1 and 10 cycles on by doubling.
#include "harness/cycle/course.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace cuaudit::harness::course_test {
namespace {

using report::Course;
using report::Trend;
using Series = std::vector<std::uint64_t>;
using Alive = std::function<std::uint64_t(std::uint64_t cycles)>;

Course Follow(const Alive& alive, std::uint64_t most = 80) {
  Series cycles = {1, 10};
  for (;;) {
    Series live;
    for (const std::uint64_t count : cycles) live.push_back(alive(count));
    const Course course = JudgeCourse(cycles, live);
    if (!IsOpen(course) || cycles.back() == most) return course;
    cycles.push_back(std::min(2 * cycles.back(), most));
  }
}

// One object is lost in cycle `first`, and in every `period`-th cycle after it.
Alive Leak(std::uint64_t period, std::uint64_t first) {
  return [=](std::uint64_t cycles) { return cycles < first ? 0 : (cycles - first) / period + 1; };
}

Alive Cache(std::uint64_t size) {
  return [=](std::uint64_t cycles) { return std::min(cycles, size); };
}

TEST(Course, ALeakThatShowsInTheFirstTenCyclesIsGrowthHoweverRareItIs) {
  for (std::uint64_t period = 1; period <= 25; ++period) {
    for (std::uint64_t first = 2; first <= std::min<std::uint64_t>(period, 10); ++first) {
      EXPECT_EQ(Follow(Leak(period, first)).trend, Trend::Growth) << "every " << period << " cycles from " << first << " on";
    }
  }
}

TEST(Course, TheSlopeOfALeakLiesBetweenItsBounds) {
  for (std::uint64_t period = 1; period <= 10; ++period) {
    const Course course = Follow(Leak(period, period));
    const double slope = 1 / static_cast<double>(period);
    EXPECT_GT(course.least, 0) << period;
    EXPECT_LE(course.least, slope + 0.05) << period;
    EXPECT_GE(course.most, slope - 1e-9) << period;
  }
}

TEST(Course, ACacheThatIsFullAtHalfTheBoundIsBounded) {
  for (std::uint64_t size = 2; size <= 40; ++size) {
    const Course course = Follow(Cache(size));
    EXPECT_EQ(course.trend, Trend::Bounded) << size;
    EXPECT_EQ(course.plateau, size);
    EXPECT_GE(course.cycles, 2 * course.reached);
  }
}

TEST(Course, ACacheThatIsFullLaterIsUndecidedAndSaysHowManyCyclesWouldTell) {
  for (std::uint64_t size = 41; size <= 64; ++size) {
    const Course course = Follow(Cache(size));
    EXPECT_EQ(course.trend, Trend::Undecided) << size;
    EXPECT_EQ(course.needed, 160U);
    EXPECT_EQ(Follow(Cache(size), course.needed).trend, Trend::Bounded) << size;
  }
}

// Five objects are lost in cycle 15, and in every 60th after it.
TEST(Course, ARareLeakOfSeveralObjectsIsWatchedForAsLongAsOneOfASingleObject) {
  for (const std::uint64_t lost : {1U, 5U, 20U}) {
    const Course early = JudgeCourse(Series{1, 10, 20, 40}, Series{0, 0, lost, lost});
    EXPECT_EQ(early.trend, Trend::Undecided) << lost;
    EXPECT_EQ(early.needed, 160U) << lost;
    EXPECT_EQ(JudgeCourse(Series{1, 10, 20, 40, 80}, Series{0, 0, lost, lost, 2 * lost}).trend, Trend::Undecided) << lost;
  }
}

TEST(Course, ACountThatFellStandsForSevenTimesAsLong) {
  const Course early = JudgeCourse(Series{1, 10, 20, 40, 80}, Series{1, 4, 9, 6, 6});
  EXPECT_EQ(early.trend, Trend::Undecided);
  EXPECT_EQ(early.needed, 160U);
  EXPECT_EQ(JudgeCourse(Series{1, 10, 20, 40, 80, 160}, Series{1, 4, 9, 6, 6, 6}).trend, Trend::Bounded);
}

TEST(Course, WhatFallsBackOrStaysIsSteady) {
  EXPECT_EQ(JudgeCourse(Series{1, 10}, Series{3, 3}).trend, Trend::Steady);
  EXPECT_EQ(JudgeCourse(Series{1, 10}, Series{3, 2}).trend, Trend::Steady);
  EXPECT_EQ(JudgeCourse(Series{1, 10, 20}, Series{3, 9, 3}).trend, Trend::Steady);
  EXPECT_EQ(JudgeCourse(Series{5}, Series{3}).trend, Trend::Steady);
  EXPECT_EQ(JudgeCourse(Series{}, Series{}).trend, Trend::Steady);
  EXPECT_EQ(JudgeEachCycle(Series{0, 1, 0, 1, 0, 1}).trend, Trend::Steady) << "emptied every other cycle";
}

TEST(Course, EachCycleOfOneRun) {
  EXPECT_EQ(JudgeEachCycle(Series{0, 1}).trend, Trend::Growth);
  EXPECT_EQ(JudgeEachCycle(Series{0, 1, 2, 3}).trend, Trend::Growth);
  EXPECT_EQ(JudgeEachCycle(Series{0, 1, 2, 2}).trend, Trend::Undecided);
  EXPECT_EQ(JudgeEachCycle(Series{0, 1, 2, 2, 2}).trend, Trend::Bounded);
  EXPECT_EQ(JudgeEachCycle(Series{0, 1, 1, 1, 1}).trend, Trend::Undecided) << "a single rise needs eight cycles";
  EXPECT_EQ(JudgeEachCycle(Series{0, 1, 1, 1, 1, 1, 1, 1, 1}).trend, Trend::Bounded);
  EXPECT_EQ(JudgeEachCycle(Series{1, 0, 2, 1, 4, 3, 5, 4}).trend, Trend::Growth) << "while it fluctuates";
}

}  // namespace
}  // namespace cuaudit::harness::course_test
