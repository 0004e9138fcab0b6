// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cycle/counts.h"
#include "harness/cycle/cycles.h"
#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::marks_test {
namespace {

using driver::CallId;
using faults::MarkKind;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Marks, CompareTheEndsOfCycles) {
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
  const std::vector<Snapshot> snapshots = MarkedSnapshots(journal.Read(), Moments::Spread, &sites);
  ASSERT_THAT(snapshots, SizeIs(3));
  EXPECT_EQ(snapshots[0].cycles, 1U);
  EXPECT_EQ(snapshots[2].cycles, 3U);
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
  EXPECT_THAT(MarkedSnapshots(journal.Read(), Moments::Spread, &sites), IsEmpty());
  journal.Mark(MarkKind::CycleBegin, 1);
  journal.Mark(MarkKind::CycleEnd, 1);
  EXPECT_THAT(MarkedSnapshots(journal.Read(), Moments::Spread, &sites), SizeIs(1));
}

}  // namespace
}  // namespace cuaudit::harness::marks_test

namespace cuaudit::harness::counts_test {
namespace {

using testing::ElementsAre;

TEST(Counts, ReadsIncreasingCounts) {
  EXPECT_THAT(*ParseCounts("1,10"), ElementsAre(1U, 10U));
  EXPECT_THAT(*ParseCounts("2,3,1000"), ElementsAre(2U, 3U, 1000U));
}

TEST(Counts, RefusesEverythingElse) {
  for (const char* const text : {"", "1", "1,", ",1", "10,1", "1,1", "0,10", "1,x", "1, 10", "-1,10", "1,99999999999999999999", "1;10"}) {
    const Result<std::vector<std::uint64_t>> counts = ParseCounts(text);
    ASSERT_FALSE(counts.ok()) << text;
    EXPECT_EQ(counts.status().exit(), Exit::Usage);
  }
}

TEST(Counts, FillsInEveryCountInEveryWord) {
  const std::vector<std::string> command = {"prog", "--cycles={n}", "{n}{n}", "{m}", "n"};
  EXPECT_TRUE(TakesCount(command));
  EXPECT_THAT(WithCount(command, 10), ElementsAre("prog", "--cycles=10", "1010", "{m}", "n"));
}

TEST(Counts, SeesThatACommandTakesNoCount) { EXPECT_FALSE(TakesCount(std::vector<std::string>{"prog", "{ n }", "{N}"})); }

}  // namespace
}  // namespace cuaudit::harness::counts_test
