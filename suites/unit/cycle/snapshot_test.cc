// SPDX-License-Identifier: MIT
// What is alive after a number of cycles, and at the ends of marked cycles.
#include "harness/cycle/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cycle/cycles.h"
#include "suites/support/journal_builder.h"

namespace cuaudit::harness::snapshot_test {
namespace {

using driver::CallId;
using driver::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

LiveSite Site(Kind kind, std::uint64_t key, std::uint64_t live, std::uint64_t bytes = 0) {
  return {kind, key, {"cuSomething", {}}, live, bytes};
}

report::Run Compare(const std::vector<Snapshot>& snapshots) {
  report::Run run;
  CompareSnapshots(snapshots, "cuaudit cycles -- prog '{n}'", &run);
  return run;
}

TEST(Snapshot, SiteThatGrowsIsAFindingWithItsRate) {
  const report::Run run = Compare({{1, {Site(Kind::Stream, 7, 2, 10)}, {}}, {10, {Site(Kind::Stream, 7, 20, 100)}, {}}});
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].rule, Rule::Growth);
  EXPECT_EQ(run.findings[0].count, 2U);
  EXPECT_EQ(run.findings[0].bytes, 10U);
  EXPECT_EQ(run.findings[0].reproduce, "cuaudit cycles -- prog '{n}'");
  EXPECT_DOUBLE_EQ(run.per_cycle.at("stream"), 2.0);
  EXPECT_THAT(run.cycle_counts, ElementsAre(1U, 10U));
}

TEST(Snapshot, SiteThatStaysIsARowAndNoFinding) {
  const report::Run run = Compare({{1, {Site(Kind::Module, 7, 6)}, {}}, {10, {Site(Kind::Module, 7, 6)}, {}}});
  EXPECT_THAT(run.findings, IsEmpty());
  EXPECT_THAT(run.per_cycle, IsEmpty());
  ASSERT_THAT(run.cycle_rows, SizeIs(1));
  EXPECT_THAT(run.cycle_rows[0].live, ElementsAre(6U, 6U));
}

TEST(Snapshot, GrowthAtOneSiteIsNotHiddenByAnother) {
  // In sum the streams stay at ten; the second site grows all the same.
  const report::Run run = Compare({{1, {Site(Kind::Stream, 7, 9), Site(Kind::Stream, 8, 1)}, {}}, {10, {Site(Kind::Stream, 8, 10)}, {}}});
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].count, 1U);
  EXPECT_THAT(run.cycle_rows, SizeIs(2));
}

TEST(Snapshot, SlowGrowthIsStillOne) {
  const report::Run run = Compare({{1, {}, {}}, {10, {Site(Kind::DeviceMemory, 7, 1, 256)}, {}}});
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].count, 1U);
  EXPECT_EQ(run.findings[0].bytes, 256U) << "all of it, and not the 28 bytes a cycle";
  EXPECT_NEAR(run.per_cycle.at("device_memory"), 1.0 / 9.0, 1e-12);
}

TEST(Snapshot, ViolationsAreFindingsWithTheirCountPerCycle) {
  const auto violation = [](std::uint64_t count) {
    return ViolationSite{Rule::MutexFreed, Kind::Mutex, 1, 2, {"pthread_mutex_init", {}}, {"free", {}}, count};
  };
  const report::Run run = Compare({{1, {}, {violation(3)}}, {10, {}, {violation(30)}}});
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].rule, Rule::MutexFreed);
  EXPECT_EQ(run.findings[0].count, 3U);
  EXPECT_EQ(run.findings[0].where, "free");
}

// A genuine driver opens them past the wrappers; each context may hold four, and what is more is the program's.
TEST(Snapshot, DescriptorsThatTheDriverOpenedForAContextGrowWithItAndNotBesideIt) {
  for (const faults::DriverKind driver : {faults::DriverKind::Genuine, faults::DriverKind::Simulated}) {
    const TemporaryDir dir;
    std::vector<Snapshot> snapshots;
    SiteTexts sites;
    for (const std::uint64_t cycles : {1U, 3U}) {
      JournalBuilder journal(dir.File("journal" + std::to_string(cycles)));
      journal.header().driver_kind.store(driver);
      for (std::uint64_t i = 0; i < cycles; ++i) {
        journal.Call(CallId::CtxCreate_v2).argument[0] = 0x70 + i;
        for (std::uint64_t k = 0; k < 5; ++k) {
          journal.Host(faults::HostCall::DescriptorFound, 0x100 + 8 * i + k).flags = faults::kForwarded | faults::kEventOrPipe;
        }
      }
      snapshots.push_back(TakeSnapshot(journal.Read(), cycles, kAtExit, &sites));
    }
    const report::Run run = Compare(snapshots);
    EXPECT_DOUBLE_EQ(run.per_cycle.at("context"), 1.0);
    EXPECT_DOUBLE_EQ(run.per_cycle.at("file_descriptor"), driver == faults::DriverKind::Genuine ? 1.0 : 5.0);
  }
}

TEST(Snapshot, CountsWhatIsAliveBySite) {
  JournalBuilder journal;
  for (const std::uint64_t handle : {0x51U, 0x52U, 0x53U}) journal.Call(CallId::StreamCreate).argument[0] = handle;
  journal.Call(CallId::StreamDestroy_v2).argument[0] = 0x52;
  SiteTexts sites;
  const Snapshot snapshot = TakeSnapshot(journal.Read(), 10, kAtExit, &sites);
  EXPECT_EQ(snapshot.cycles, 10U);
  ASSERT_THAT(snapshot.live, SizeIs(1));
  EXPECT_EQ(snapshot.live[0].kind, Kind::Stream);
  EXPECT_EQ(snapshot.live[0].live, 2U);
  EXPECT_EQ(snapshot.live[0].acquired.call, "cuStreamCreate");
}

TEST(Snapshot, CountsAMutexWhoseMemoryWentAsLost) {
  JournalBuilder journal;
  journal.Host(faults::HostCall::MutexInit, 0x1000);
  journal.Host(faults::HostCall::MutexFreed, 0x1000, 1);
  journal.Host(faults::HostCall::MutexInit, 0x2000);
  journal.Host(faults::HostCall::MutexDestroy, 0x2000);
  SiteTexts sites;
  const Snapshot snapshot = TakeSnapshot(journal.Read(), 1, kAtExit, &sites);
  ASSERT_THAT(snapshot.live, SizeIs(1));
  EXPECT_EQ(snapshot.live[0].kind, Kind::Mutex);
  EXPECT_EQ(snapshot.live[0].live, 1U);
  EXPECT_THAT(snapshot.violations, testing::Not(IsEmpty()));
}

TEST(Snapshot, WhatGrowsInsideTheDriverIsARowAndNoFinding) {
  // Key 1 is the driver's own row, whatever the place.
  const report::Run run = Compare({{1, {Site(Kind::HostHeap, 1, 2)}, {}}, {10, {Site(Kind::HostHeap, 1, 20)}, {}}});
  EXPECT_THAT(run.findings, IsEmpty());
  EXPECT_THAT(run.cycle_rows, SizeIs(1));
}

TEST(Snapshot, KnowsNothingOfWhatComesAfterIt) {
  JournalBuilder journal;
  journal.Call(CallId::StreamCreate).argument[0] = 0x51;
  journal.Call(CallId::StreamDestroy_v2).argument[0] = 0x51;
  const std::uint64_t until = journal.Mark(faults::MarkKind::CycleEnd, 1).begin;
  journal.Call(CallId::StreamDestroy_v2).argument[0] = 0x51;
  journal.Call(CallId::EventCreate).argument[0] = 0xe1;
  SiteTexts sites;
  const Observation run = journal.Read();
  const Snapshot then = TakeSnapshot(run, 1, until, &sites);
  EXPECT_THAT(then.live, IsEmpty());
  EXPECT_THAT(then.violations, IsEmpty());
  const Snapshot end = TakeSnapshot(run, 1, kAtExit, &sites);
  EXPECT_THAT(end.live, SizeIs(1));
  EXPECT_THAT(end.violations, SizeIs(1));
}

TEST(Snapshot, DoesNotCountAThreadThatHasYetToDetachItself) {
  JournalBuilder journal;
  journal.Host(faults::HostCall::ThreadCreate, 0x7001);
  journal.Host(faults::HostCall::ThreadCreate, 0x7002);
  const std::uint64_t until = journal.Mark(faults::MarkKind::CycleEnd, 1).begin;
  journal.Host(faults::HostCall::ThreadDetachSelf, 0x7001);
  journal.Host(faults::HostCall::ThreadJoin, 0x7002);
  SiteTexts sites;
  const Snapshot snapshot = TakeSnapshot(journal.Read(), 1, until, &sites);
  ASSERT_THAT(snapshot.live, SizeIs(1));
  EXPECT_EQ(snapshot.live[0].live, 1U) << "the one that is joined later";
}

// A number that comes back was closed unseen. A mutex that is initialised again was never destroyed.
TEST(Snapshot, AHandleThatComesBackEndedUnseenUnlessItIsAMutex) {
  JournalBuilder journal;
  std::vector<std::uint64_t> ends;
  for (std::uint32_t cycle = 1; cycle <= 3; ++cycle) {
    journal.Host(faults::HostCall::DescriptorOpen, 0x4);
    journal.Host(faults::HostCall::MutexInit, 0x9000);
    ends.push_back(journal.Mark(faults::MarkKind::CycleEnd, cycle).begin);
  }
  SiteTexts sites;
  std::vector<Snapshot> snapshots;
  for (const std::uint64_t end : ends) snapshots.push_back(TakeSnapshot(journal.Read(), snapshots.size() + 1, end, &sites));
  const std::vector<LiveRow> rows = LiveRows(snapshots);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].site.kind, Kind::Mutex);
  EXPECT_THAT(rows[0].live, ElementsAre(1U, 2U, 3U));
  EXPECT_EQ(rows[1].site.kind, Kind::FileDescriptor);
  EXPECT_THAT(rows[1].live, ElementsAre(1U, 1U, 1U));
}

TEST(Snapshot, BlocksThatArePartOfAnotherResourceAreNotCounted) {
  JournalBuilder journal;
  journal.Host(faults::HostCall::Allocate, 0x1000, 64).flags = faults::kForwarded | faults::kPartOfOther;
  journal.Host(faults::HostCall::Allocate, 0x2000, 32).flags = faults::kForwarded;
  SiteTexts sites;
  const Snapshot snapshot = TakeSnapshot(journal.Read(), 1, kAtExit, &sites);
  ASSERT_THAT(snapshot.live, SizeIs(1));
  EXPECT_EQ(snapshot.live[0].bytes, 32U);
}

using faults::MarkKind;

TEST(Marks, CompareTheEndsOfCycles) {
  JournalBuilder journal;
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
  JournalBuilder journal;
  SiteTexts sites;
  EXPECT_THAT(MarkedSnapshots(journal.Read(), Moments::Spread, &sites), IsEmpty());
  journal.Mark(MarkKind::CycleBegin, 1);
  journal.Mark(MarkKind::CycleEnd, 1);
  EXPECT_THAT(MarkedSnapshots(journal.Read(), Moments::Spread, &sites), SizeIs(1));
}

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
}  // namespace cuaudit::harness::snapshot_test
