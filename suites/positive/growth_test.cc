// SPDX-License-Identifier: MIT
// What stays the same from cycle to cycle, or rises and tires of it: no growth.
#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/cycle/meters.h"
#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"
#include "suites/support/cases/traces.h"

namespace cuaudit::testing::growth_test {
namespace {

using ::testing::IsEmpty;

CUAUDIT_CASE(Growth, OneObjectOfEveryKindForTheProcess) {
  for (const KindCase& c : KindCases()) {
    const CaseRow row(c.kind);
    const report::Run run = Grown([&](Trace& t, std::uint64_t cycles) {
      if (IsLeakKind(c.kind)) AcquireAnother(t, c, 1);  // filled once, given back never
      for (std::uint64_t i = 0; i < cycles; ++i) {
        c.acquire(t);
        c.release(t);
      }
    });
    EXPECT_THAT(run.findings, IsEmpty());
  }
}

CUAUDIT_CASE(Growth, WhatDiesWithItsOwnContextInEveryCycle) {
  const report::Run run = Grown([](Trace& t, std::uint64_t cycles) {
    for (std::uint64_t i = 1; i <= cycles; ++i) {
      t.Call(driver::CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
      t.CreateStream(i).Context(0xa);
      t.Call(driver::CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
    }
  });
  EXPECT_THAT(run.findings, IsEmpty());
}

CUAUDIT_CASE(Growth, OneMorePoolInTenCycles) {
  const report::Run run = Grown([](Trace& t, std::uint64_t cycles) {
    for (std::uint64_t i = 0; i <= cycles / 10; ++i) t.Host(faults::HostCall::Map, (i + 1) << 24U, 1U << 20U);
  });
  EXPECT_THAT(run.findings, IsEmpty());
}

CUAUDIT_CASE(Growth, OneLargerTableOfTheCLibrary) {
  const report::Run run = Grown([](Trace& t, std::uint64_t cycles) {
    for (std::uint64_t i = 0; i <= cycles / 10; ++i)
      t.Host(faults::HostCall::Allocate, (i + 1) << 12U, 64).Flags(faults::kForwarded | faults::kKeptByLibrary);
  });
  EXPECT_THAT(run.findings, IsEmpty());
}

// Whether a thread has come to detaching itself when the program ends is chance, and so is a descriptor of another's that was seen by
// chance.
CUAUDIT_CASE(Growth, WhatGoesByItself) {
  const report::Run run = Grown([](Trace& t, std::uint64_t cycles) {
    for (std::uint64_t i = 1; i <= cycles; ++i) {
      t.Host(faults::HostCall::ThreadCreate, i);
      t.Host(faults::HostCall::DescriptorFound, i);
      t.Host(faults::HostCall::ThreadDetachSelf, i);
      t.Host(faults::HostCall::DescriptorGone, i);
    }
  });
  EXPECT_THAT(run.findings, IsEmpty());
}

CUAUDIT_CASE(Growth, ARingOfEightSlotsFilledLazily) {
  EXPECT_THAT(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 8); }).findings, IsEmpty());
}

CUAUDIT_CASE(Growth, ACacheThatHolds32) {
  EXPECT_THAT(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 32); }).findings, IsEmpty());
}

CUAUDIT_CASE(Growth, WhatTheFirstThreeCyclesKeep) {
  EXPECT_THAT(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 3); }).findings, IsEmpty());
}

void ExpectSteady(const report::Run& run) {
  EXPECT_THAT(run.findings, IsEmpty());
  EXPECT_THAT(run.notes, IsEmpty());
  EXPECT_EQ(run.cycle_counts.back(), 10U) << "nothing to decide, no further runs";
}

CUAUDIT_CASE(Bounded, WhatTheFirstCycleMadeStays) {
  ExpectSteady(GrownTo([](auto) { return 5; }));
}

CUAUDIT_CASE(Bounded, APoolThatShrinks) {
  ExpectSteady(GrownTo([](auto cycles) { return cycles == 1 ? 5 : 3; }));
}

CUAUDIT_CASE(Bounded, NothingIsLeft) {
  ExpectSteady(GrownTo([](auto) { return 0; }));
}

CUAUDIT_CASE(Undecided, WhatTheFirstCycleMadeStays) {
  ExpectSteady(GrownTo([](auto) { return 5; }));
}

CUAUDIT_CASE(Undecided, ACacheThatIsFullInTime) {
  EXPECT_FALSE(GrownTo([](auto cycles) { return std::min<std::uint64_t>(cycles, 40); }).message.undecided);
}

CUAUDIT_CASE(Undecided, ATableThatFillsAtRandomGivenEnoughCycles) {
  const report::Run run =
      GrownTo([](auto cycles) { return static_cast<std::uint64_t>(8 * (1 - std::pow(1 - 1.0 / 8, static_cast<double>(cycles))) + 0.5); });
  EXPECT_FALSE(run.message.undecided);
}

void Silent(const std::vector<std::uint64_t>& readings) {
  const report::Meter row = harness::JudgeMeter({"device_bytes", 512, readings}, nullptr, 0);
  if (row.grows) Saw(harness::Name(harness::Rule::Growth), "none");
  EXPECT_FALSE(row.grows);
}

CUAUDIT_CASE(Growth, AMeterThatStands) { Silent(std::vector<std::uint64_t>(20, 1U << 20U)); }

CUAUDIT_CASE(Growth, ATableThatFills) {
  std::vector<std::uint64_t> readings(200);
  for (std::size_t i = 0; i < readings.size(); ++i)
    readings[i] = static_cast<std::uint64_t>(1e6 * (2 - std::exp(-static_cast<double>(i) / 40.0)));
  Silent(readings);
}

// The buckets of a hash table: few steps, each as large as all before.
CUAUDIT_CASE(Growth, ATableThatDoubles) {
  std::vector<std::uint64_t> readings(80);
  for (std::size_t i = 0; i < readings.size(); ++i)
    readings[i] = (1U << 20U) + (std::uint64_t{64} << std::bit_width(std::min<std::size_t>(i, 50)));
  Silent(readings);
}

}  // namespace
}  // namespace cuaudit::testing::growth_test
