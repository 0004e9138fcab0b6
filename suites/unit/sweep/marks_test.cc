// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cycle/cycles.h"
#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::marks_test {
namespace {

using driver::CallId;
using faults::MarkKind;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Marks, CompareTheFirstCyclesEndWithTheLast) {
  const TemporaryDir dir;
  JournalBuilder journal(dir.File("journal"));
  for (std::uint32_t cycle = 1; cycle <= 3; ++cycle) {
    journal.Mark(MarkKind::CycleBegin, cycle);
    faults::Record& kept = journal.Call(CallId::StreamCreate);
    kept.argument[0] = 0x50 + cycle;
    kept.cycle = cycle;
    faults::Record& given_back = journal.Call(CallId::EventCreate);
    given_back.argument[0] = 0xe0 + cycle;
    given_back.cycle = cycle;
    journal.Call(CallId::EventDestroy_v2).argument[0] = 0xe0 + cycle;
    journal.Mark(MarkKind::CycleEnd, cycle);
  }
  // Released at the very end: alive at every mark all the same.
  journal.Call(CallId::StreamDestroy_v2).argument[0] = 0x51;
  SiteTexts sites;
  const std::vector<Snapshot> snapshots = MarkedSnapshots(journal.Read(), Moments::FirstAndLast, &sites);
  ASSERT_THAT(snapshots, SizeIs(2));
  EXPECT_EQ(snapshots[0].cycles, 1U);
  EXPECT_EQ(snapshots[1].cycles, 3U);
  report::Run run;
  CompareSnapshots(snapshots, "", &run);
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].kind, "stream");
  EXPECT_EQ(run.findings[0].count, 1U);
}

TEST(Marks, OneCycleIsTooFewToCompare) {
  const TemporaryDir dir;
  JournalBuilder journal(dir.File("journal"));
  SiteTexts sites;
  EXPECT_THAT(MarkedSnapshots(journal.Read(), Moments::FirstAndLast, &sites), IsEmpty());
  journal.Mark(MarkKind::CycleBegin, 1);
  journal.Mark(MarkKind::CycleEnd, 1);
  EXPECT_THAT(MarkedSnapshots(journal.Read(), Moments::FirstAndLast, &sites), SizeIs(1));
}

}  // namespace
}  // namespace cuaudit::harness::marks_test
