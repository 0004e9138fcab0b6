// SPDX-License-Identifier: MIT
#include "harness/sweep/unwinding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness {
namespace {

using driver::CallId;
using testing::ElementsAre;
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
  Unwinding Found(bool prune = true, const Ending& ending = {}) {
    const Observation before = rehearsal_.Read();
    const States first = AllStates(StatesOf(before.journal, before.ledger));
    return FaultsWhileUnwinding(before, first, trial_.Read(ending), 1, prune);
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
  Places places;
  for (const CallState& call : StatesOf(before.journal, before.ledger).calls) places.insert(call.site);
  const Unwinding unwinding = FaultsWhileUnwinding(before, {}, trial, 1, true, &places);
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
  // The way back, and the first call of the next turn, which is the first to acquire something.
  EXPECT_THAT(Texts(Found()),
              ElementsAre(StartsWith("cuStreamDestroy#1"), StartsWith("cuStreamDestroy#1"), StartsWith("cuStreamCreate#2")));
  EXPECT_EQ(Found().pruned.at("second faults: same place and state as a first fault"), 5U);
  EXPECT_THAT(Found(false).faults, SizeIs(8)) << "without pruning all";
}

TEST_F(UnwindingTest, ACallOnTheWayBackIsNotTheSameAsInTheFaultFreeRun) {
  Cycle(trial_, 1, true);
  const Observation before = rehearsal_.Read();
  const States first = AllStates(StatesOf(before.journal, before.ledger));
  for (const NextFault& next : Found().faults) EXPECT_FALSE(first.contains(next.state));
}

TEST_F(UnwindingTest, NothingIsTriedAfterAFaultThatKillsButItIsCounted) {
  Cycle(trial_, 1, true);
  const Unwinding unwinding = Found(true, {0, 11, false});
  EXPECT_THAT(unwinding.faults, IsEmpty());
  ASSERT_THAT(unwinding.left_out, SizeIs(2));
  EXPECT_EQ(unwinding.left_out[0].why, "the first fault alone kills the program");
}

TEST_F(UnwindingTest, NothingIsFoundWhereNoFaultFired) {
  Cycle(trial_, 1, false);
  EXPECT_THAT(Found().faults, IsEmpty());
}

}  // namespace
}  // namespace cuaudit::harness
