// SPDX-License-Identifier: MIT
// Does it grow: noisy meters as series made for the purpose, and counts followed from 1 and 10 cycles on.
#include "harness/cycle/growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace cuaudit::harness::growth_test {
namespace {

// The statistics of noisy meters: planted leaks of known size in noise of known kind, and noise alone.

using Series = std::vector<std::uint64_t>;
constexpr std::uint64_t kBase = 1U << 30U;

// `noise` per cycle on top of a leak of `leak` per cycle, in steps of `quantum`.
Series Planted(std::size_t cycles, double leak, std::uint64_t quantum, const std::function<double()>& noise) {
  Series series;
  for (std::size_t i = 0; i < cycles; ++i) {
    const double value = static_cast<double>(kBase) + leak * static_cast<double>(i + 1) + noise();
    series.push_back(static_cast<std::uint64_t>(std::max(0.0, value)) / quantum * quantum);
  }
  return series;
}

double Silent() { return 0; }

TEST(Grows, OneMoreACycle) { EXPECT_TRUE(Grows(Series{0, 1, 2, 3})); }
TEST(Grows, OneMoreEveryThirdCycle) { EXPECT_TRUE(Grows(Series{0, 0, 1, 1, 1, 2, 2})); }
TEST(Grows, OneMoreInTheLastCycleOnly) { EXPECT_TRUE(Grows(Series{2, 2, 2, 3})); }
TEST(Grows, WhileItFluctuates) { EXPECT_TRUE(Grows(Series{1, 0, 2, 1, 4, 3, 5, 4})); }
TEST(Grows, NotWhenNothingChanges) { EXPECT_FALSE(Grows(Series{5, 5, 5})); }
TEST(Grows, NotWhenACacheIsEmptiedEveryOtherCycle) { EXPECT_FALSE(Grows(Series{0, 1, 0, 1, 0, 1})); }
TEST(Grows, NotWhenItFalls) { EXPECT_FALSE(Grows(Series{4, 3, 3, 1})); }
TEST(Grows, NotFromOneMomentAlone) { EXPECT_FALSE(Grows(Series{7})); }

TEST(GrowthRule, FewerReadingsThanBlocksCertifyNothing) {
  for (std::size_t cycles = 0; cycles < kBlocks; ++cycles) {
    const Growth growth = JudgeGrowth(Planted(cycles, 100, 1, Silent), 1);
    EXPECT_FALSE(growth.enough);
    EXPECT_FALSE(growth.grows);
    EXPECT_EQ(growth.detectable, 0U) << "no bound is claimed";
  }
}

TEST(GrowthRule, OneByteACycleIsSeenInTenQuietCycles) {
  const Growth growth = JudgeGrowth(Planted(10, 1, 1, Silent), 1);
  EXPECT_TRUE(growth.grows);
  EXPECT_EQ(growth.per_cycle, 1);
  EXPECT_EQ(growth.noise, 0U);
}

TEST(GrowthRule, AConstantMeterNeverGrowsAndCertifiesItsQuantum) {
  const Growth growth = JudgeGrowth(Series(10, kBase), 4096);
  EXPECT_TRUE(growth.enough);
  EXPECT_FALSE(growth.grows);
  EXPECT_EQ(growth.detectable, 4096U);
  EXPECT_EQ(JudgeGrowth(Series(1000, kBase), 4096).detectable, 41U) << "a hundred cycles a block share one page";
}

TEST(GrowthRule, OneFlatOrFallingBlockIsNoGrowth) {
  Series series = Planted(10, 8, 1, Silent);
  series[5] = series[4];
  EXPECT_FALSE(JudgeGrowth(series, 1).grows);
  series[5] = series[4] - 1;
  EXPECT_FALSE(JudgeGrowth(series, 1).grows);
}

TEST(GrowthRule, ATableThatFillsLevelsOff) {
  Series series;
  for (int i = 0; i < 200; ++i) series.push_back(kBase + static_cast<std::uint64_t>(1e6 * (1 - std::exp(-i / 40.0))));
  const Growth growth = JudgeGrowth(series, 1);
  EXPECT_FALSE(growth.grows);
  EXPECT_GT(growth.detectable, 1000U) << "what it could not tell from a leak is in the bound";
}

// The last four of nine steps are compared with the first four; the middle one belongs to neither.
TEST(GrowthRule, ASeriesLevelsOffBelowAQuarterOfItsFirstSpeed) {
  const auto of_steps = [](const std::vector<std::uint64_t>& steps) {
    Series series = {kBase};
    for (const std::uint64_t step : steps) series.push_back(series.back() + step);
    return JudgeGrowthOfRuns(series, 1, 1);
  };
  EXPECT_FALSE(of_steps({25, 25, 25, 25, 10, 6, 6, 6, 6}).grows);
  EXPECT_TRUE(of_steps({25, 25, 25, 25, 10, 7, 7, 6, 6}).grows);
}

TEST(GrowthRule, OneStepIsACache) {
  Series series(100, kBase);
  for (std::size_t i = 37; i < series.size(); ++i) series[i] += 1U << 20U;
  EXPECT_FALSE(JudgeGrowth(series, 1).grows);
}

TEST(GrowthRule, ReadingsThatFillNoBlockAreTheOldest) {
  Series series(5, kBase);
  for (std::uint64_t i = 1; i <= kBlocks; ++i) series.push_back(kBase + 64 * i);
  EXPECT_TRUE(JudgeGrowth(series, 1).grows);
}

TEST(GrowthRule, WhatTheControlArmGainsIsNotTheSubjects) {
  const Series control = Planted(100, 64, 1, Silent);
  EXPECT_TRUE(JudgeGrowth(Planted(100, 64, 1, Silent), 1).grows);
  const Growth same = JudgeGrowth(Planted(100, 64, 1, Silent), 1, control);
  EXPECT_FALSE(same.grows);
  EXPECT_EQ(same.drift, 640U);
  EXPECT_GT(same.detectable, 64U);
  EXPECT_TRUE(JudgeGrowth(Planted(100, 65, 1, Silent), 1, control).grows);
}

TEST(GrowthRule, ANoisyControlArmRaisesTheBound) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> noise(0, 5000);
  const Series quiet(100, kBase);
  const Series control = Planted(100, 0, 1, [&] { return noise(random); });
  EXPECT_GT(JudgeGrowth(quiet, 1, control).detectable, 4 * JudgeGrowth(quiet, 1).detectable);
}

TEST(GrowthRule, RunsOfMoreAndMoreCyclesAreJudgedByTheirEnds) {
  const Growth growth = JudgeGrowthOfRuns(Planted(10, 320, 1, Silent), 10, 16);
  EXPECT_TRUE(growth.grows);
  EXPECT_EQ(growth.per_cycle, 32);
  EXPECT_FALSE(JudgeGrowthOfRuns(Planted(9, 320, 1, Silent), 10, 16).enough);
}

struct NoiseKind {
  const char* name;
  std::function<double(std::mt19937_64&)> draw;
};

std::vector<NoiseKind> NoiseKinds() {
  return {{"normal", [](std::mt19937_64& r) { return std::normal_distribution<double>(0, 4096)(r); }},
          {"uniform", [](std::mt19937_64& r) { return std::uniform_real_distribution<double>(0, 65536)(r); }},
          {"exponential", [](std::mt19937_64& r) { return std::exponential_distribution<double>(1.0 / 16384)(r); }},
          // Rare large spikes: one cycle in fifty holds a megabyte for a moment.
          {"spikes", [](std::mt19937_64& r) {
             const double spike = std::uniform_real_distribution<double>(0, 1)(r) < 0.02 ? 1 << 20 : 0;
             return spike + std::uniform_real_distribution<double>(0, 4096)(r);
           }}};
}

// The bound of a run that does not leak is what the next run must find. 99 of 100 at least; README.md says how many.
TEST(GrowthPower, ALeakAsLargeAsTheBoundIsFound) {
  for (const NoiseKind& kind : NoiseKinds()) {
    std::mt19937_64 random(20261120);
    const auto draw = [&] { return kind.draw(random); };
    int found = 0;
    constexpr int kTrials = 1000;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Growth before = JudgeGrowth(Planted(50, 0, 16, draw), 16);
      ASSERT_TRUE(before.enough);
      const Growth after = JudgeGrowth(Planted(50, static_cast<double>(before.detectable), 16, draw), 16);
      if (after.grows) ++found;
    }
    EXPECT_GE(found, kTrials * 99 / 100) << kind.name;
    RecordProperty(std::string("found_of_1000_in_") + kind.name, found);
  }
}

// As `cycles --detect` does it: a longer run may be noisier than the one before, so it is asked for again.
TEST(GrowthPower, TheChosenNumberOfCyclesReachesTheBoundInFourRounds) {
  constexpr std::uint64_t kBound = 4096;
  for (const NoiseKind& kind : NoiseKinds()) {
    std::mt19937_64 random(3);
    const auto draw = [&] { return kind.draw(random); };
    int reached = 0;
    constexpr int kTrials = 100;
    for (int trial = 0; trial < kTrials; ++trial) {
      Growth seen = JudgeGrowth(Planted(50, 0, 16, draw), 16);
      for (int round = 0; round < 4 && seen.detectable > kBound; ++round) {
        const std::uint64_t cycles = CyclesFor(seen, 16, kBound);
        ASSERT_EQ(cycles % kBlocks, 0U);
        seen = JudgeGrowth(Planted(cycles, 0, 16, draw), 16);
      }
      if (seen.detectable <= kBound) ++reached;
    }
    EXPECT_GE(reached, 95) << kind.name;
  }
}

TEST(GrowthFalseAlarms, NoiseAloneNeverFiresInFortyThousandWindows) {
  for (const NoiseKind& kind : NoiseKinds()) {
    std::mt19937_64 random(11);
    const FalseAlarms seen = CountFalseAlarms(Planted(100000, 0, 16, [&] { return kind.draw(random); }), 16);
    EXPECT_EQ(seen.windows, 10000U);
    EXPECT_EQ(seen.alarms, 0U) << kind.name;
  }
}

TEST(GrowthFalseAlarms, ALeakIsCountedInEveryWindow) {
  const FalseAlarms seen = CountFalseAlarms(Planted(105, 1, 1, Silent), 1);
  EXPECT_EQ(seen.windows, 10U);
  EXPECT_EQ(seen.alarms, 10U);
}

// A leak or a cache that fills: counts made for the purpose, followed from 1 and 10 cycles on by doubling.

using report::Course;
using report::Trend;
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

// However many objects a doubling adds, and whatever the base of the logarithm is.
TEST(Course, WhatRisesAsALogarithmDoesIsUndecided) {
  for (const double factor : {1.0, 1.45, 2.0, 2.9, 5.0}) {
    const Alive alive = [=](std::uint64_t cycles) { return static_cast<std::uint64_t>(factor * std::log(static_cast<double>(cycles))); };
    EXPECT_EQ(Follow(alive).trend, Trend::Undecided) << factor;
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
}  // namespace cuaudit::harness::growth_test
