// SPDX-License-Identifier: MIT
// The calls on the way back from a fault: which they are, which ways are equal, and which places were tried before.
#include "harness/sweep/run/unwinding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "harness/sweep/findings/coverage.h"
#include "harness/sweep/plan/make_plan.h"
#include "suites/support/journal_builder.h"

namespace cuaudit::harness::unwinding_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Two cycles of stream, memory, and back. In the trial the first allocation is refused.
class UnwindingTest : public ::testing::Test {
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
  Unwinding Found(Pruning prune = Pruning::Second, const Ending& ending = {},
                  const std::string& fault = "cuMemAlloc#1=OUT_OF_MEMORY,refuse") {
    const Observation before = rehearsal_.Read();
    const std::vector<std::string> faults = {fault};
    return FaultsWhileUnwinding(Rehearsed(before.evidence()), FirstOf(before), trial_.Read(ending), faults, prune);
  }
  static std::vector<std::string> Texts(const Unwinding& unwinding) {
    std::vector<std::string> texts;
    for (const NextFault& next : unwinding.faults) texts.push_back(TextOf(next.fault));
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
  const Unwinding unwinding = FaultsWhileUnwinding(Rehearsed(before.evidence()), {}, trial, faults, Pruning::Second, &places);
  const std::vector<std::string> texts = Texts(unwinding);
  EXPECT_THAT(texts, ElementsAre(::testing::EndsWith("#+1=INVALID_CONTEXT,refuse"), ::testing::EndsWith("#+1=INVALID_CONTEXT,after"),
                                 StartsWith("cuEventDestroy@site="), StartsWith("cuEventDestroy@site=")));
  EXPECT_THAT(texts[0], StartsWith("cuStreamDestroy@site="));
  EXPECT_THAT(texts[2], ::testing::HasSubstr("#1="));
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
  EXPECT_THAT(Found(Pruning::None).faults, SizeIs(8)) << "without pruning all";
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
  const Unwinding unwinding = Found(Pruning::Second, {0, 11, false});
  EXPECT_THAT(unwinding.faults, IsEmpty());
  ASSERT_THAT(unwinding.left_out, SizeIs(2));
  EXPECT_EQ(unwinding.left_out[0].why, Reason::SecondKilled);
}

// The rehearsal's second turn begins with the same objects as the first: nothing but the number of the turn tells the faults apart.
TEST_F(UnwindingTest, TheWayBackFromAnotherTurnIsAnother) {
  Cycle(rehearsal_, 2, false);
  Cycle(trial_, 2, true);
  const Unwinding one = Found(Pruning::Second, {}, "cuMemAlloc#2=OUT_OF_MEMORY,refuse");
  const Unwinding other = Found(Pruning::Second, {}, "cuMemAlloc#3=OUT_OF_MEMORY,refuse");
  ASSERT_THAT(one.faults, SizeIs(2));
  ASSERT_THAT(other.faults, SizeIs(2));
  EXPECT_NE(one.faults[0].state, other.faults[0].state);
  const Unwinding persists = Found(Pruning::Second, {}, "cuMemAlloc#2=OUT_OF_MEMORY,persist");
  EXPECT_NE(one.faults[0].state, persists.faults[0].state);
  EXPECT_EQ(Found(Pruning::All, {}, "cuMemAlloc#2=OUT_OF_MEMORY,refuse").faults[0].state,
            Found(Pruning::All, {}, "cuMemAlloc#3=OUT_OF_MEMORY,refuse").faults[0].state);
}

// On its way back the program destroys its own context, with nothing in it or with memory in it. When the destruction is refused, that
// memory is left.
TEST_F(UnwindingTest, WhatIsInTheProgramsOwnContextIsNotLostBeforeTheContextEnds) {
  const auto program = [](JournalBuilder& journal, std::uint64_t allocations) {
    Call(journal, CallId::CtxCreate_v2, 1, 0xa).context = 0;
    for (std::uint64_t i = 1; i <= 3; ++i) {
      faults::Record& memory = Call(journal, CallId::MemAlloc_v2, 1, i <= allocations ? 0x1000 * i : 0);
      memory.context = 0xa;
      if (i <= allocations) continue;
      memory.flags = faults::kInjected;
      memory.fault = 1;
      memory.result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
    for (std::uint64_t i = 1; allocations == 3 && i <= 3; ++i) Call(journal, CallId::MemFree_v2, 1, 0x1000 * i).context = 0xa;
    Call(journal, CallId::CtxDestroy_v2, 1, 0xa).context = 0xa;
  };
  JournalBuilder rehearsal(dir_.File("own"));
  program(rehearsal, 3);
  const Observation before = rehearsal.Read();
  std::set<std::uint64_t> states;
  for (std::uint64_t allocations = 0; allocations < 3; ++allocations) {
    JournalBuilder trial(dir_.File("own" + std::to_string(allocations)));
    program(trial, allocations);
    const std::vector<std::string> faults = {"cuMemAlloc#" + std::to_string(allocations + 1) + "=OUT_OF_MEMORY,refuse"};
    const Unwinding unwinding = FaultsWhileUnwinding(Rehearsed(before.evidence()), FirstOf(before), trial.Read(), faults, Pruning::Second);
    ASSERT_THAT(Texts(unwinding), ElementsAre(StartsWith("cuCtxDestroy#1"), StartsWith("cuCtxDestroy#1")));
    states.insert(unwinding.faults[0].state);
  }
  EXPECT_THAT(states, SizeIs(3));
}

TEST_F(UnwindingTest, AFirstFaultThatIsNotTriedStandsForNothing) {
  Cycle(trial_, 1, true);
  Cycle(trial_, 1, false);
  const Observation before = rehearsal_.Read();
  const std::vector<std::string> faults = {"cuMemAlloc#1=OUT_OF_MEMORY,refuse"};
  PlanOptions options;
  options.limit = 1;
  const Unwinding unwinding =
      FaultsWhileUnwinding(Rehearsed(before.evidence()), FirstOf(before, options), trial_.Read(), faults, Pruning::Second);
  EXPECT_THAT(unwinding.pruned, IsEmpty());
  EXPECT_THAT(unwinding.faults, SizeIs(8));
}

TEST_F(UnwindingTest, NothingIsFoundWhereNoFaultFired) {
  Cycle(trial_, 1, false);
  EXPECT_THAT(Found().faults, IsEmpty());
}

// Which unwindings are taken for equal, and which must never be.

// A program that acquires two blocks and a stream, fails, and gives back what it has. The stack of each call is its line.
class UnwindingShapeTest : public ::testing::Test {
 protected:
  static faults::Record& Call(JournalBuilder& journal, CallId call, std::uint32_t stack, std::uint64_t handle = 0) {
    faults::Record& record = journal.Call(call);
    record.stack = stack;
    record.argument[0] = handle;
    if (stack != 0) journal.StackIn(stack, "/usr/bin/program");
    return record;
  }
  static void Fail(JournalBuilder& journal, CallId call, std::uint32_t stack) {
    faults::Record& record = Call(journal, call, stack);
    record.flags = faults::kInjected;
    record.fault = 1;
    record.result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  // The shape after the call that failed.
  static UnwindingShape Shape(const JournalBuilder& journal, const std::vector<bool>& lost = {}) {
    const Observation trial = journal.Read();
    const CallStates states = StatesOf(trial.evidence());
    std::vector<const CallState*> since;
    bool failed = false;
    for (const CallState& call : states.calls) {
      if (failed) since.push_back(&call);
      failed = failed || call.record->fault != 0;
    }
    return ShapeOf(trial.evidence(), since, lost);
  }

  TemporaryDir dir_;
  JournalBuilder one_{dir_.File("one")};
  JournalBuilder other_{dir_.File("other")};
};

TEST_F(UnwindingShapeTest, AnotherTurnOfALoopAndAnotherFailingLineHaveTheSame) {
  Call(one_, CallId::StreamCreate, 1, 0x10);
  Fail(one_, CallId::StreamSynchronize, 2);
  Call(one_, CallId::StreamDestroy_v2, 3, 0x10);
  Call(other_, CallId::StreamCreate, 1, 0x10);
  for (int turn = 0; turn < 5; ++turn) Call(other_, CallId::StreamSynchronize, 2, 0x10);
  Fail(other_, CallId::StreamQuery, 4);
  Call(other_, CallId::StreamDestroy_v2, 3, 0x10);
  const UnwindingShape a = Shape(one_);
  const UnwindingShape b = Shape(other_);
  EXPECT_NE(a.shape, 0U);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.steps, b.steps);
}

// The calls and their places are the same; what they release was made elsewhere.
TEST_F(UnwindingShapeTest, EqualCallsThatReleaseOtherObjectsHaveAnother) {
  Call(one_, CallId::MemAlloc_v2, 1, 0x1000);
  Fail(one_, CallId::StreamSynchronize, 2);
  Call(one_, CallId::MemFree_v2, 3, 0x1000);
  Call(other_, CallId::MemAlloc_v2, 4, 0x1000);
  Fail(other_, CallId::StreamSynchronize, 2);
  Call(other_, CallId::MemFree_v2, 3, 0x1000);
  const UnwindingShape a = Shape(one_);
  const UnwindingShape b = Shape(other_);
  EXPECT_NE(a.shape, b.shape);
  EXPECT_NE(a.steps, b.steps);
}

TEST_F(UnwindingShapeTest, AnotherOrderOfReleasesAnotherResultAndAnotherPlaceHaveOthers) {
  std::vector<std::uint64_t> shapes;
  for (int variant = 0; variant < 4; ++variant) {
    JournalBuilder journal(dir_.File("variant" + std::to_string(variant)));
    Call(journal, CallId::StreamCreate, 1, 0x10);
    Call(journal, CallId::MemAlloc_v2, 2, 0x1000);
    Fail(journal, CallId::StreamSynchronize, 5);
    if (variant == 1) Call(journal, CallId::MemFree_v2, 4, 0x1000);
    faults::Record& stream = Call(journal, CallId::StreamDestroy_v2, variant == 3 ? 9U : 3U, 0x10);
    if (variant == 2) stream.result = CUDA_ERROR_INVALID_HANDLE;
    if (variant != 1) Call(journal, CallId::MemFree_v2, 4, 0x1000);
    shapes.push_back(Shape(journal).shape);
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(shapes[i], shapes[j]) << i << ' ' << j;
  }
}

TEST_F(UnwindingShapeTest, WhatIsLostTellsShapesApartButNotHowMuch) {
  for (JournalBuilder* const journal : {&one_, &other_}) {
    Call(*journal, CallId::StreamCreate, 1, 0x10);
    Call(*journal, CallId::StreamCreate, 1, 0x20);
    Fail(*journal, CallId::StreamSynchronize, 2);
    Call(*journal, CallId::CtxSynchronize, 3);
  }
  EXPECT_NE(Shape(one_, {true, false}).shape, Shape(other_).shape);
  EXPECT_EQ(Shape(one_, {true, false}).shape, Shape(other_, {true, true}).shape);
}

TEST_F(UnwindingShapeTest, TheThirdTurnOfALoopStandsForTheRestOfIt) {
  std::vector<UnwindingShape> shapes;
  for (const std::uint64_t blocks : {1U, 2U, 3U, 4U, 40U}) {
    JournalBuilder journal(dir_.File("blocks" + std::to_string(blocks)));
    for (std::uint64_t i = 1; i <= blocks; ++i) Call(journal, CallId::MemAlloc_v2, 1, i * 0x1000);
    Fail(journal, CallId::StreamCreate, 2);
    for (std::uint64_t i = 1; i <= blocks; ++i) Call(journal, CallId::MemFree_v2, 3, i * 0x1000);
    shapes.push_back(Shape(journal));
  }
  EXPECT_NE(shapes[0].shape, shapes[1].shape);
  EXPECT_NE(shapes[1].shape, shapes[2].shape);
  EXPECT_EQ(shapes[2].shape, shapes[3].shape);
  EXPECT_EQ(shapes[2].shape, shapes[4].shape);
  ASSERT_THAT(shapes[4].steps, SizeIs(40));
  EXPECT_NE(shapes[4].steps[0], shapes[4].steps[1]);
  EXPECT_EQ(shapes[4].steps[2], shapes[4].steps[39]);
}

TEST_F(UnwindingShapeTest, AnInterpretedCallACallWithoutStackAndThreadsHaveNone) {
  Call(one_, CallId::StreamCreate, 1, 0x10);
  Fail(one_, CallId::StreamSynchronize, 2);
  Call(one_, CallId::StreamDestroy_v2, 3, 0x10);
  EXPECT_NE(Shape(one_).shape, 0U);
  one_.StackIn(3, "/usr/bin/python3.11");
  EXPECT_EQ(Shape(one_).shape, 0U);
  Call(other_, CallId::StreamCreate, 1, 0x10);
  Fail(other_, CallId::StreamSynchronize, 2);
  Call(other_, CallId::StreamDestroy_v2, 0, 0x10);
  EXPECT_EQ(Shape(other_).shape, 0U);
  JournalBuilder threads(dir_.File("threads"));
  Call(threads, CallId::StreamCreate, 1, 0x10);
  Fail(threads, CallId::StreamSynchronize, 2);
  Call(threads, CallId::StreamDestroy_v2, 3, 0x10).tid = 7;
  EXPECT_EQ(Shape(threads).shape, 0U);
}

TEST(WithoutRepeats, KeepsThreeTurnsOfWhateverRepeatsInARow) {
  EXPECT_THAT(WithoutRepeats(std::vector<std::uint64_t>{7, 7, 7, 7, 7}), ElementsAre(7, 7, 7));
  EXPECT_THAT(WithoutRepeats(std::vector<std::uint64_t>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3}), ElementsAre(1, 2, 1, 2, 1, 2, 3));
  EXPECT_THAT(WithoutRepeats(std::vector<std::uint64_t>{1, 2, 2, 1, 2, 1}), ElementsAre(1, 2, 2, 1, 2, 1)) << "nothing repeats four times";
  EXPECT_THAT(WithoutRepeats(std::vector<std::uint64_t>{}), SizeIs(0));
}

report::Acquired At(const std::string& call, const std::string& function, int line) {
  return {call, {{"libcuda.so.1", call, "", 0, 8}, {"player", function, "player.c", line, 16}, {"player", "main", "player.c", 90, 32}}};
}

TEST(TriedBefore, APlaceIsToldByCallAndFunctionAndTheirNumber) {
  TriedBefore before;
  before.Add("cuMemAlloc", "open", 1);
  before.Add("cuMemAlloc", "grow", 2);
  before.Add("cuMemAlloc", "grow", 1);  // with another error, which fewer places were tried with
  before.Add("cuMemAlloc", "only_in_a_baseline", 0);
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "open", 31), At("cuMemAlloc", "open_more", 31), At("cuMemFree", "open", 33)}),
              ElementsAre(Novelty::Known, Novelty::New, Novelty::New))
      << "it may have moved to another line";
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "grow", 1), At("cuMemAlloc", "grow", 2), At("cuMemAlloc", "open", 3)}),
              ElementsAre(Novelty::Known, Novelty::Known, Novelty::Known));
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "grow", 1), At("cuMemAlloc", "open", 3), At("cuMemAlloc", "open", 4)}),
              ElementsAre(Novelty::Changed, Novelty::Changed, Novelty::Changed))
      << "one place less, and one more";
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "only_in_a_baseline", 1), At("cuMemAlloc", "only_in_a_baseline", 2)}),
              ElementsAre(Novelty::Known, Novelty::Known));
  EXPECT_THAT(TriedBefore().Compare({At("cuMemAlloc", "open", 31)}), ElementsAre(Novelty::New));
}

TEST(TriedBefore, APlaceWithoutAStackIsOneOfItsCall) {
  TriedBefore before;
  before.Add("malloc", "", 1);
  EXPECT_THAT(before.Compare({{"malloc", {}}, {"cuInit", {}}}), ElementsAre(Novelty::Known, Novelty::New));
}

TEST(TriedBefore, WhatACompilerAddsToANameDoesNotCount) {
  TriedBefore before;
  before.Add("cuMemAlloc", "pool::open", 1);
  EXPECT_THAT(before.Compare({At("cuMemAlloc", "pool::open(int) [clone .constprop.0]", 5)}), ElementsAre(Novelty::Known));
  EXPECT_EQ(PlaceInProgram(At("c", "f(int)", 5).stack).place, PlaceInProgram(At("c", "f(int) [clone .cold]", 5).stack).place);
  EXPECT_NE(PlaceInProgram(At("c", "f", 5).stack).place, PlaceInProgram(At("c", "f", 6).stack).place);
}

}  // namespace
}  // namespace cuaudit::harness::unwinding_test
