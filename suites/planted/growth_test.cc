// SPDX-License-Identifier: MIT
// Growth: each kind of resource, one more a cycle; and meters that rise.
#include "harness/cycle/meters.h"
#include "suites/support/cases/case.h"
#include "suites/support/cases/grown.h"
#include "suites/support/cases/kind_cases.h"

namespace cuaudit::testing::growth_test {
namespace {

using ::testing::SizeIs;

CUAUDIT_CASE(Growth, OneObjectOfEveryKindACycle) {
  for (const KindCase& c : KindCases()) {
    if (!IsLeakKind(c.kind)) continue;
    const CaseRow row(c.kind);
    const report::Run run = Grown([&](std::uint64_t cycles) {
      Trace t;
      for (std::uint64_t i = 0; i < cycles; ++i) AcquireAnother(t, c, i);
      return t;
    });
    ASSERT_THAT(run.findings, SizeIs(1));
    EXPECT_EQ(run.findings[0].rule, harness::Rule::Growth);
    EXPECT_EQ(run.findings[0].kind, driver::Name(c.kind));
  }
}

// The whole object is lost, not its first reference only.
CUAUDIT_CASE(Growth, ReferencesOfOneObject) {
  const report::Run run = Grown([](std::uint64_t cycles) {
    Trace t;
    t.Call(driver::CallId::UserObjectCreate).Out(0, 0x9).In(3, 2 * cycles);
    return t;
  });
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].count, 2U);
}

CUAUDIT_CASE(Growth, WhatARefusedReleaseLeavesInEveryCycle) {
  const report::Run run = Grown([](std::uint64_t cycles) {
    Trace t;
    for (std::uint64_t i = 1; i <= cycles; ++i) {
      t.CreateStream(i);
      t.DestroyStream(i).Refused(CUDA_ERROR_INVALID_CONTEXT);
    }
    return t;
  });
  EXPECT_THAT(run.findings, SizeIs(1));
}

CUAUDIT_CASE(Growth, WhatDiesWithTheContextOfEveryCycle) {
  const report::Run run = Grown([](std::uint64_t cycles) {
    Trace t;
    for (std::uint64_t i = 1; i <= cycles; ++i) {
      t.Retain();
      t.CreateStream(i);
      t.ReleasePrimary();
    }
    return t;
  });
  EXPECT_THAT(run.findings, SizeIs(1));
}

CUAUDIT_CASE(Growth, AMutexWhoseMemoryWentInEveryCycle) {
  Also(harness::Rule::MutexFreed, driver::Kind::Mutex);
  const report::Run run = Grown([](std::uint64_t cycles) {
    Trace t;
    for (std::uint64_t i = 1; i <= cycles; ++i) {
      t.Host(faults::HostCall::MutexInit, i);
      t.Host(faults::HostCall::MutexFreed, i);
    }
    return t;
  });
  EXPECT_THAT(run.findings, SizeIs(2)) << "the mutexes, and that their memory was freed";
}

// A library's own cache may be larger now and then; one more in each cycle is lost.
CUAUDIT_CASE(Growth, ACacheOfTheCLibraryInEveryCycle) {
  const report::Run run = Grown([](std::uint64_t cycles) {
    Trace t;
    for (std::uint64_t i = 1; i <= cycles; ++i)
      t.Host(faults::HostCall::Allocate, i << 12U, 64).Flags(faults::kForwarded | faults::kKeptByLibrary);
    return t;
  });
  EXPECT_THAT(run.findings, SizeIs(1));
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
