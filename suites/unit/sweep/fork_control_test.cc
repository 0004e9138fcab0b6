// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/fork_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::fork_control_test {
namespace {

using driver::CallId;
using faults::ForkRefusal;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kDeadlineMs = 10;

class ForkControlTest : public testing::Test {
 protected:
  ForkControlTest() {
    for (JournalBuilder* const one : {&program_, &copy_}) {
      one->Call(CallId::Init);
      one->Call(CallId::StreamCreate).argument[0] = 0x51;
    }
  }
  std::string Difference(const Ending& ending = {}) {
    const Observation expected = program_.Read();
    return DifferenceFrom(expected.evidence(), copy_.Read(ending), kDeadlineMs);
  }

  TemporaryDir dir_;
  JournalBuilder program_{dir_.File("program")};
  JournalBuilder copy_{dir_.File("copy")};
};

TEST_F(ForkControlTest, ACopyThatDoesTheSameDoesNotDiffer) { EXPECT_EQ(Difference(), ""); }

TEST_F(ForkControlTest, AnotherEndingIsADifference) {
  EXPECT_EQ(Difference({3, 0, false}), "it exited with status 3");
  EXPECT_EQ(Difference({0, 9, true}), "it did not finish within 10 ms");
}

TEST_F(ForkControlTest, AnotherCallIsADifferenceAndSoIsAnotherResult) {
  copy_.Call(CallId::StreamQuery).result = CUDA_ERROR_NOT_READY;
  EXPECT_EQ(Difference(), "call 3: only one run made it (2 calls, then 3)");
  EXPECT_EQ(Difference({3, 0, false}), "call 3: only one run made it (2 calls, then 3); it exited with status 3");
  program_.Call(CallId::StreamQuery);
  EXPECT_EQ(Difference(), "call 3: cuStreamQuery answered another result");
}

TEST_F(ForkControlTest, WhatItDeclaresIsCompared) {
  for (JournalBuilder* const one : {&program_, &copy_}) one->Mark(faults::MarkKind::Output, 1).argument[0] = 1;
  program_.Mark(faults::MarkKind::Report, 1);
  faults::Record& report = copy_.Mark(faults::MarkKind::Report, 1);
  EXPECT_EQ(Difference(), "");
  report.argument[0] = 2;
  EXPECT_EQ(Difference(), "it declared something else");
}

TEST_F(ForkControlTest, WhatItLeavesOnTheHostIsComparedBothWays) {
  const std::string of_host = "host_heap of malloc";
  copy_.Host(faults::HostCall::Allocate, 0x1000, 64);
  EXPECT_EQ(Difference(), "it left behind: " + of_host);
  program_.Host(faults::HostCall::Allocate, 0x2000, 64);
  EXPECT_EQ(Difference(), "") << "addresses are each run's own";
  program_.Host(faults::HostCall::Allocate, 0x3000, 64);
  EXPECT_EQ(Difference(), "it did not leave behind: " + of_host);
}

TEST_F(ForkControlTest, AJournalThatLostRecordsProvesNothing) {
  copy_.header().flags.fetch_or(faults::kRecordsDropped);
  EXPECT_THAT(Difference(), HasSubstr("the journal overflowed"));
}

TEST_F(ForkControlTest, CopiesAreForkedAtAFewCallsTheFirstAndTheLastAmongThem) {
  EXPECT_EQ(ControlPoints(program_.Read().evidence()).size(), 2U);
  for (int i = 0; i < 97; ++i) program_.Call(CallId::MemAlloc_v2);
  program_.Call(CallId::StreamQuery);
  const std::vector<faults::Fault> points = ControlPoints(program_.Read().evidence());
  ASSERT_EQ(points.size(), 5U);
  EXPECT_EQ(points.front().base, driver::BaseId::Init);
  EXPECT_EQ(points[2].base, driver::BaseId::MemAlloc);
  EXPECT_EQ(points[2].occurrence, 48U);
  EXPECT_EQ(points.back().base, driver::BaseId::StreamQuery);
  EXPECT_THAT(ControlPoints(JournalBuilder(dir_.File("empty")).Read().evidence()), IsEmpty());
}

TEST_F(ForkControlTest, OnlyACopyThatWasSeenToDoTheSameAllowsForks) {
  const Observation rehearsal = program_.Read();
  const std::vector<ForkRefusal> refusals = {ForkRefusal::Threads, ForkRefusal::None};
  ForkControl none(rehearsal);
  EXPECT_EQ(none.WhyNot(refusals), "the program has other threads there");
  ForkControl same(rehearsal);
  same.TakeCopy(1, copy_.Read(), kDeadlineMs);
  same.TakeTrunk(copy_.Read(), kDeadlineMs);
  EXPECT_EQ(same.WhyNot(refusals), "");
  ForkControl other(rehearsal);
  other.TakeCopy(0, copy_.Read(), kDeadlineMs);
  other.TakeCopy(1, copy_.Read({7, 0, false}), kDeadlineMs);
  EXPECT_EQ(other.WhyNot(refusals),
            "without a fault a copy forked at cuStreamCreate#1 is not what the program is: it exited with status 7");
  ForkControl trunk(rehearsal);
  trunk.TakeCopy(1, copy_.Read(), kDeadlineMs);
  trunk.TakeTrunk(copy_.Read({7, 0, false}), kDeadlineMs);
  EXPECT_THAT(trunk.WhyNot(refusals), HasSubstr("without a fault a run that forks is not what the program is"));
}

}  // namespace
}  // namespace cuaudit::harness::fork_control_test
