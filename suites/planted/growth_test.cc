// SPDX-License-Identifier: MIT
// Growth: each kind of resource, one more a cycle; and meters that rise.
#include <algorithm>
#include <cmath>

#include "harness/cycle/meters.h"
#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"
#include "suites/support/cases/traces.h"

namespace cuaudit::testing::growth_test {
namespace {

using ::testing::SizeIs;

CUAUDIT_CASE(Growth, OneObjectOfEveryKindACycle) {
  for (const KindCase& c : KindCases()) {
    if (!IsLeakKind(c.kind)) continue;
    const CaseRow row(c.kind);
    const report::Run run = Grown([&](Trace& t, std::uint64_t cycles) {
      for (std::uint64_t i = 0; i < cycles; ++i) AcquireAnother(t, c, i);
    });
    ASSERT_THAT(run.findings, SizeIs(1));
    EXPECT_EQ(run.findings[0].rule, harness::Rule::Growth);
    EXPECT_EQ(run.findings[0].kind, driver::Name(c.kind));
  }
}

// The whole object is lost, not its first reference only.
CUAUDIT_CASE(Growth, ReferencesOfOneObject) {
  const report::Run run =
      Grown([](Trace& t, std::uint64_t cycles) { t.Call(driver::CallId::UserObjectCreate).Out(0, 0x9).In(3, 2 * cycles); });
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].count, 2U);
}

CUAUDIT_CASE(Growth, WhatARefusedReleaseLeavesInEveryCycle) {
  const report::Run run = Grown([](Trace& t, std::uint64_t cycles) {
    for (std::uint64_t i = 1; i <= cycles; ++i) {
      t.CreateStream(i);
      t.DestroyStream(i).Refused(CUDA_ERROR_INVALID_CONTEXT);
    }
  });
  EXPECT_THAT(run.findings, SizeIs(1));
}

CUAUDIT_CASE(Growth, WhatDiesWithTheContextOfEveryCycle) {
  const report::Run run = Grown([](Trace& t, std::uint64_t cycles) {
    for (std::uint64_t i = 1; i <= cycles; ++i) {
      t.Retain();
      t.CreateStream(i);
      t.ReleasePrimary();
    }
  });
  EXPECT_THAT(run.findings, SizeIs(1));
}

CUAUDIT_CASE(Growth, AMutexWhoseMemoryWentInEveryCycle) {
  Also(harness::Rule::MutexFreed, driver::Kind::Mutex);
  const report::Run run = Grown([](Trace& t, std::uint64_t cycles) {
    for (std::uint64_t i = 1; i <= cycles; ++i) {
      t.Host(faults::HostCall::MutexInit, i);
      t.Host(faults::HostCall::MutexFreed, i);
    }
  });
  EXPECT_THAT(run.findings, SizeIs(2)) << "the mutexes, and that their memory was freed";
}

// A library's own cache may be larger now and then; one more in each cycle is lost.
CUAUDIT_CASE(Growth, ACacheOfTheCLibraryInEveryCycle) {
  const report::Run run = Grown([](Trace& t, std::uint64_t cycles) {
    for (std::uint64_t i = 1; i <= cycles; ++i)
      t.Host(faults::HostCall::Allocate, i << 12U, 64).Flags(faults::kForwarded | faults::kKeptByLibrary);
  });
  EXPECT_THAT(run.findings, SizeIs(1));
}

void ExpectGrowth(const report::Run& run, std::uint64_t cycles, double least, double most) {
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].rule, harness::Rule::Growth);
  EXPECT_EQ(run.cycle_counts.back(), cycles);
  EXPECT_NEAR(run.cycle_rows.at(0).course.least, least, 0.005);
  EXPECT_NEAR(run.cycle_rows.at(0).course.most, most, 0.005);
}

CUAUDIT_CASE(Growth, AStreamInEveryTenthCycle) {
  ExpectGrowth(GrownTo([](auto cycles) { return cycles / 10; }), 80, 0.1, 0.11);
}

CUAUDIT_CASE(Growth, ARareLeakThatSkipsADoubling) {
  ExpectGrowth(GrownTo([](auto cycles) { return (cycles + 10) / 19; }), 80, 0.05, 0.05);
}

CUAUDIT_CASE(Growth, ALeakBesideACacheAtOnePlace) {
  ExpectGrowth(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 8) + cycles / 5; }), 80, 0.2, 1);
}

CUAUDIT_CASE(Growth, ALeakThatBeginsInTheSixthCycle) {
  ExpectGrowth(GrownTo([](auto cycles) { return cycles < 6 ? 0 : cycles - 5; }), 80, 0.56, 1);
}

CUAUDIT_CASE(Growth, ALeakUnderAPoolThatIsTrimmedNowAndThen) {
  ExpectGrowth(GrownTo([](auto cycles) { return cycles + (cycles == 10 ? 15 : 0); }), 80, 0.75, 1);
}

// Without further runs the two given counts decide.
CUAUDIT_CASE(Growth, WhatIsComparedByTwoCountsOnly) {
  ExpectGrowth(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 8); }, 10), 10, 0.78, 0.78);
}

void ExpectBounded(const report::Run& run, std::uint64_t cycles, std::uint64_t plateau, std::uint64_t reached) {
  EXPECT_THAT(run.findings, SizeIs(0));
  ASSERT_THAT(run.notes, SizeIs(1));
  EXPECT_EQ(run.notes[0].rule, harness::Rule::Bounded);
  EXPECT_EQ(run.cycle_counts.back(), cycles);
  EXPECT_EQ(run.cycle_rows.at(0).course.plateau, plateau);
  EXPECT_EQ(run.cycle_rows.at(0).course.reached, reached);
  EXPECT_FALSE(run.message.undecided);
  EXPECT_TRUE(run.per_cycle.empty());
}

// Between 1 and 10 cycles only: seven objects of one cycle look the same.
CUAUDIT_CASE(Bounded, ARingOfEightSlotsFilledLazily) {
  ExpectBounded(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 8); }), 80, 8, 10);
}

CUAUDIT_CASE(Bounded, ACacheThatHolds32) {
  ExpectBounded(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 32); }), 80, 32, 40);
}

CUAUDIT_CASE(Bounded, WhatTheFirstThreeCyclesKeep) {
  ExpectBounded(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 3); }), 80, 3, 10);
}

// A cache that rose between several counts has shown how fast it fills.
CUAUDIT_CASE(Bounded, ACacheThatHolds16) {
  ExpectBounded(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 16); }), 40, 16, 20);
}

CUAUDIT_CASE(Bounded, WhatOneCycleKeepsStandsForSevenTimesAsLong) {
  ExpectBounded(GrownTo([](auto cycles) { return cycles < 5 ? 0 : 1; }), 80, 1, 10);
}

CUAUDIT_CASE(Bounded, APoolThatIsTrimmedBelowItsHighest) {
  ExpectBounded(GrownTo([](auto cycles) { return cycles == 1 ? 1 : cycles == 10 ? 8 : 6; }), 80, 8, 10);
}

void ExpectUndecided(const report::Run& run, std::uint64_t needed) {
  EXPECT_THAT(run.findings, SizeIs(0));
  ASSERT_THAT(run.notes, SizeIs(1));
  EXPECT_EQ(run.notes[0].rule, harness::Rule::Undecided);
  ASSERT_TRUE(run.message.undecided);
  EXPECT_EQ(run.message.undecided->places, 1U);
  EXPECT_EQ(run.message.undecided->cycles, needed);
}

CUAUDIT_CASE(Undecided, ACacheThatIsNotFullAtTheBound) {
  ExpectUndecided(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 64); }), 160);
}

CUAUDIT_CASE(Undecided, ATableThatFillsAtRandom) {
  ExpectUndecided(
      GrownTo([](auto cycles) { return static_cast<std::uint64_t>(48 * (1 - std::pow(1 - 1.0 / 48, static_cast<double>(cycles))) + 0.5); }),
      160);
}

CUAUDIT_CASE(Undecided, WhatRisesAsALogarithmDoes) {
  for (const std::uint64_t each : {1U, 2U}) {
    ExpectUndecided(GrownTo([=](auto cycles) { return each * static_cast<std::uint64_t>(std::log2(static_cast<double>(cycles))); }), 160);
  }
}

CUAUDIT_CASE(Undecided, OneOfTheFirstCyclesAndThenOneMuchLater) {
  ExpectUndecided(GrownTo([](auto cycles) { return cycles < 7 ? 0 : cycles < 60 ? 1 : 2; }), 160);
}

// Five objects at once are one rise, as a single object is.
CUAUDIT_CASE(Undecided, FiveObjectsInOneCycleAndFiveMuchLater) {
  ExpectUndecided(GrownTo([](auto cycles) { return cycles < 5 ? 0 : cycles < 65 ? 5 : 10; }), 160);
}

CUAUDIT_CASE(Undecided, WhatHasNotStoodForLongEnough) {
  ExpectUndecided(GrownTo([](auto cycles) { return cycles < 5 ? 0 : 1; }, 20), 80);
}

void Meter(const std::vector<std::uint64_t>& readings, bool expected) {
  const report::Meter row = harness::JudgeMeter({"device_bytes", 512, readings}, nullptr, 0);
  if (row.grows) Saw(harness::Name(harness::Rule::Growth), "none");
  EXPECT_EQ(row.grows, expected);
}

CUAUDIT_CASE(Growth, AMeterThatStandsHigherAfterEveryBlock) {
  std::vector<std::uint64_t> readings(20);
  for (std::size_t i = 0; i < readings.size(); ++i) readings[i] = (1U << 20U) + 4096 * i;
  Meter(readings, true);
}

}  // namespace
}  // namespace cuaudit::testing::growth_test
