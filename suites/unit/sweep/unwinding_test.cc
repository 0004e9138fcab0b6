// SPDX-License-Identifier: MIT
#include "harness/sweep/run/unwinding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/sweep/plan/make_plan.h"
#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::unwinding_test {
namespace {

using driver::CallId;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// Two cycles of stream, memory, and back. In the trial the first allocation is refused.
class UnwindingTest : public testing::Test {
 protected:
  UnwindingTest() {
    Cycle(rehearsal_, 1, false);
    Cycle(rehearsal_, 2, false);
  }
  static faults::Record& Call(JournalBuilder& journal, CallId call, std::uint32_t cycle, std::uint64_t handle = 0) {
    faults::Record& record = journal.Call(call);
    record.stack = 1;
    record.cycle = cycle;
    record.argument[0] = handle;
    return record;
  }
  static void Cycle(JournalBuilder& journal, std::uint32_t cycle, bool refused) {
    Call(journal, CallId::StreamCreate, cycle, 0x10);
    faults::Record& memory = Call(journal, CallId::MemAlloc_v2, cycle, 0x1000);
    if (refused) {
      memory.flags = faults::kInjected;
      memory.fault = 1;
      memory.result = CUDA_ERROR_OUT_OF_MEMORY;
      memory.argument[0] = 0;
    } else {
      Call(journal, CallId::MemFree_v2, cycle, 0x1000);
    }
    Call(journal, CallId::StreamDestroy_v2, cycle, 0x10);
  }
  static FirstFaults FirstOf(const Observation& rehearsal, const PlanOptions& options = {}) {
    const CallStates states = StatesOf(rehearsal.evidence());
    return {states, MakePlan(states, options)};
  }
  // The allocation that `Cycle` refuses is the first or, after another cycle, the second.
  Unwinding Found(Prune prune = Prune::Second, const Ending& ending = {}, const std::string& fault = "cuMemAlloc#1=OUT_OF_MEMORY,refuse") {
    const Observation before = rehearsal_.Read();
    const std::vector<std::string> faults = {fault};
    return FaultsWhileUnwinding(Rehearsed(before.evidence()), FirstOf(before), trial_.Read(ending), faults, prune);
  }
  static std::vector<std::string> Texts(const Unwinding& unwinding) {
    std::vector<std::string> texts;
    for (const NextFault& next : unwinding.faults) texts.push_back(next.fault);
    return texts;
  }

  TemporaryDir dir_;
  JournalBuilder rehearsal_{dir_.File("rehearsal")};
  JournalBuilder trial_{dir_.File("trial")};
};

TEST_F(UnwindingTest, AReleaseFailsInTwoWays) {
  Cycle(trial_, 1, true);
  EXPECT_THAT(Texts(Found()), ElementsAre("cuStreamDestroy#1=INVALID_CONTEXT,refuse", "cuStreamDestroy#1=INVALID_CONTEXT,after"));
}

// Of the way back of the thread that was hit each call counts from there; another thread's way back is a place that no good run comes to.
TEST_F(UnwindingTest, BySiteItCountsFromTheFaultOnTheThreadThatWasHit) {
  Cycle(trial_, 1, true);
  Call(trial_, CallId::StreamDestroy_v2, 1, 0x20).tid = 7;
  Call(trial_, CallId::EventDestroy_v2, 1, 0x30).tid = 7;
  const Observation before = rehearsal_.Read();
  const Observation trial = trial_.Read();
  const std::vector<std::string> faults = {"cuMemAlloc#1=OUT_OF_MEMORY,refuse"};
  Places places;
  for (const CallState& call : StatesOf(before.evidence()).calls) places.insert(call.site);
  const Unwinding unwinding = FaultsWhileUnwinding(Rehearsed(before.evidence()), {}, trial, faults, Prune::Second, &places);
  const std::vector<std::string> texts = Texts(unwinding);
  EXPECT_THAT(texts, ElementsAre(testing::EndsWith("#+1=INVALID_CONTEXT,refuse"), testing::EndsWith("#+1=INVALID_CONTEXT,after"),
                                 StartsWith("cuEventDestroy@site="), StartsWith("cuEventDestroy@site=")));
  EXPECT_THAT(texts[0], StartsWith("cuStreamDestroy@site="));
  EXPECT_THAT(texts[2], testing::HasSubstr("#1="));
}

TEST_F(UnwindingTest, EndsWithTheCycleThatTheProgramMarks) {
  Cycle(trial_, 1, true);
  Cycle(trial_, 2, false);
  EXPECT_THAT(Found().faults, SizeIs(2));
  EXPECT_THAT(Found().pruned, IsEmpty());
}

TEST_F(UnwindingTest, WithoutMarksItEndsWhereTheProgramHasRecovered) {
  Cycle(trial_, 1, true);
  Cycle(trial_, 1, false);
  // The way back, the first call of the next turn, which is the first to acquire something, and of what follows the ways that no first
  // fault is tried in.
  EXPECT_THAT(Texts(Found()), ElementsAre(StartsWith("cuStreamDestroy#1"), StartsWith("cuStreamDestroy#1"), StartsWith("cuStreamCreate#2"),
                                          EndsWith(",after"), EndsWith(",after")));
  EXPECT_EQ(Found().pruned.at(Reason::SecondAsFirst), 3U);
  EXPECT_THAT(Found(Prune::None).faults, SizeIs(8)) << "without pruning all";
}

// One place of an interpreter stands for many lines. Only when all calls to the end are those of the fault-free run has it recovered.
TEST_F(UnwindingTest, AnInterpretedProgramHasRecoveredWhenItEndsAsTheFaultFreeRunDoes) {
  rehearsal_.StackIn(1, "/usr/bin/python3.11");
  trial_.StackIn(1, "/usr/bin/python3.11");
  Cycle(trial_, 1, true);
  Cycle(trial_, 1, false);
  EXPECT_EQ(Found().pruned.at(Reason::SecondAsFirst), 3U);
  Call(trial_, CallId::EventCreate, 1, 0x30);
  Call(trial_, CallId::EventDestroy_v2, 1, 0x30);
  EXPECT_THAT(Found().pruned, IsEmpty());
}

TEST_F(UnwindingTest, ACallOnTheWayBackIsNotTheSameAsInTheFaultFreeRun) {
  Cycle(trial_, 1, true);
  const Observation before = rehearsal_.Read();
  const FirstFaults first = FirstOf(before);
  for (const NextFault& next : Found().faults) {
    EXPECT_TRUE(next.on_the_way_back);
    EXPECT_FALSE(first.Tried(next.fault, next.state));
  }
}

TEST_F(UnwindingTest, NothingIsTriedAfterAFaultThatKillsButItIsCounted) {
  Cycle(trial_, 1, true);
  const Unwinding unwinding = Found(Prune::Second, {0, 11, false});
  EXPECT_THAT(unwinding.faults, IsEmpty());
  ASSERT_THAT(unwinding.left_out, SizeIs(2));
  EXPECT_EQ(unwinding.left_out[0].why, Reason::SecondKilled);
}

// The rehearsal's second turn begins with the same objects as the first: nothing but the number of the turn tells the faults apart.
TEST_F(UnwindingTest, TheWayBackFromAnotherTurnIsAnother) {
  Cycle(rehearsal_, 2, false);
  Cycle(trial_, 2, true);
  const Unwinding one = Found(Prune::Second, {}, "cuMemAlloc#2=OUT_OF_MEMORY,refuse");
  const Unwinding other = Found(Prune::Second, {}, "cuMemAlloc#3=OUT_OF_MEMORY,refuse");
  ASSERT_THAT(one.faults, SizeIs(2));
  ASSERT_THAT(other.faults, SizeIs(2));
  EXPECT_NE(one.faults[0].state, other.faults[0].state);
  const Unwinding persists = Found(Prune::Second, {}, "cuMemAlloc#2=OUT_OF_MEMORY,persist");
  EXPECT_NE(one.faults[0].state, persists.faults[0].state);
  EXPECT_EQ(Found(Prune::All, {}, "cuMemAlloc#2=OUT_OF_MEMORY,refuse").faults[0].state,
            Found(Prune::All, {}, "cuMemAlloc#3=OUT_OF_MEMORY,refuse").faults[0].state);
}

TEST_F(UnwindingTest, AFirstFaultThatIsNotTriedStandsForNothing) {
  Cycle(trial_, 1, true);
  Cycle(trial_, 1, false);
  const Observation before = rehearsal_.Read();
  const std::vector<std::string> faults = {"cuMemAlloc#1=OUT_OF_MEMORY,refuse"};
  PlanOptions options;
  options.limit = 1;
  const Unwinding unwinding =
      FaultsWhileUnwinding(Rehearsed(before.evidence()), FirstOf(before, options), trial_.Read(), faults, Prune::Second);
  EXPECT_THAT(unwinding.pruned, IsEmpty());
  EXPECT_THAT(unwinding.faults, SizeIs(8));
}

TEST_F(UnwindingTest, NothingIsFoundWhereNoFaultFired) {
  Cycle(trial_, 1, false);
  EXPECT_THAT(Found().faults, IsEmpty());
}

}  // namespace
}  // namespace cuaudit::harness::unwinding_test
