// SPDX-License-Identifier: MIT
#include "harness/ledger/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/ledger/ledger.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::facts_test {
namespace {

using faults::MarkKind;
using faults::ProcessEvent;
using harness::Facts;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kOther = 71;

TEST(Facts, CallsOfTheProgramAreInTheOrderInWhichTheyBegan) {
  Trace t;
  t.CreateStream(0x10).At(5, 6);
  t.CreateStream(0x20).At(3, 4);
  t.CreateStream(0x30).At(7, 8).Flags(faults::kForwarded | faults::kNested);
  t.CreateStream(0x40).At(0, 0);
  EXPECT_THAT(t.Fold().facts.calls, ElementsAre(1, 0)) << "neither the nested one nor the one that was never begun";
}

TEST(Facts, ThreadsOfOneProcessAndProcessesThatCallAreToldApart) {
  Trace one;
  one.CreateStream(0x10);
  one.CreateStream(0x20);
  one.Event(ProcessEvent::Fork, kOther, kProcess);
  EXPECT_FALSE(one.Fold().facts.threaded) << "the child calls nothing";
  Trace threads;
  threads.CreateStream(0x10);
  threads.CreateStream(0x20).Thread(kThread + 1);
  EXPECT_TRUE(threads.Fold().facts.threaded);
  Trace processes;
  processes.CreateStream(0x10);
  processes.CreateStream(0x20).Process(kOther);
  EXPECT_TRUE(processes.Fold().facts.threaded);
}

TEST(Facts, OfSeveralHitsOfAFaultTheEarliestCounts) {
  Trace t;
  t.CreateStream(0x10).Refused().At(7, 8);
  t.CreateStream(0x20).Refused().At(3, 4);
  t.CreateStream(0x30).Refused().At(9, 10);
  const Facts facts = t.Fold().facts;
  EXPECT_EQ(facts.hits[0].record, 1U);
  EXPECT_EQ(facts.hits[0].begin, 3U);
  EXPECT_EQ(facts.hits[1].begin, 0U);
}

// The host probes number the requests that can be refused. The others come from code that is not the program's own.
TEST(Facts, HostRequestsWithoutANumberAreForeign) {
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x1000, 64);
  t.Host(faults::HostCall::Allocate, 0x2000, 64);
  t.Host(faults::HostCall::ThreadCreate, 0x3000);
  std::vector<faults::Record> records = t.Records();
  records[0].occurrence = 1;
  const Facts facts = harness::FactsOf(records);
  constexpr auto kMemory = static_cast<std::size_t>(harness::Asked::Memory);
  constexpr auto kThread = static_cast<std::size_t>(harness::Asked::Thread);
  EXPECT_THAT(facts.asked[kMemory], ElementsAre(0));
  EXPECT_EQ(facts.foreign[kMemory], 1U);
  EXPECT_THAT(facts.asked[kThread], IsEmpty());
  EXPECT_EQ(facts.foreign[kThread], 1U);
}

TEST(Facts, ChildrenThatWroteNoEndVanished) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Event(ProcessEvent::Fork, kOther, kProcess);
  EXPECT_THAT(t.Fold().facts.Vanished(), ElementsAre(kOther)) << "the first process ends where we see it";
  t.Event(ProcessEvent::Exit, kOther);
  EXPECT_THAT(t.Fold().facts.Vanished(), IsEmpty());
}

TEST(Facts, WhoNeverCallsTheDriverIsAHelper) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Event(ProcessEvent::Fork, kOther, kProcess);
  EXPECT_FALSE(t.Fold().facts.IsSubject(kOther));
  EXPECT_TRUE(t.Fold().facts.IsSubject(kProcess)) << "the program itself";
  t.CreateStream(0x10).Process(kOther);
  EXPECT_TRUE(t.Fold().facts.IsSubject(kOther));
  EXPECT_TRUE(Facts().IsSubject(kOther)) << "nothing is known";
}

TEST(Facts, CyclesReachToTheLastOneThatAnyMarkNames) {
  Trace t;
  t.Mark(MarkKind::CycleBegin).Cycle(1).At(1, 1);
  t.Mark(MarkKind::CycleEnd).Cycle(1).At(2, 2);
  t.Mark(MarkKind::Phase).Cycle(2).At(3, 3);
  const Facts facts = t.Fold().facts;
  ASSERT_EQ(facts.cycles.size(), 2U);
  EXPECT_EQ(facts.cycles[0].end, 2U);
  EXPECT_EQ(facts.cycles[1].begin, 0U);
}

TEST(Facts, NobodyAskedForAreNotNoted) {
  Trace t;
  t.CreateStream(0x10);
  const harness::Ledger whole = t.Fold();
  harness::Ledger objects = harness::FoldObjects(t.Records());
  EXPECT_EQ(objects.facts, Facts());
  objects.facts = whole.facts;
  EXPECT_EQ(objects, whole);
}

TEST(Facts, OfAPartCountFromItsFirstRecord) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.CreateStream(0x10);
  t.CreateStream(0x20).Refused();
  const std::vector<faults::Record> records = t.Records();
  EXPECT_EQ(harness::FactsOf(records), harness::Fold(records).facts);
  const Facts part = harness::FactsOf(std::span(records).subspan(1));
  EXPECT_THAT(part.calls, ElementsAre(0, 1));
  EXPECT_EQ(part.hits[0].record, 1U);
}

}  // namespace
}  // namespace cuaudit::testing::facts_test
