// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/call_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::call_state_test {
namespace {

using driver::CallId;
using testing::SizeIs;

class CallStateTest : public testing::Test {
 protected:
  // A call with a call stack: without one its state is unknown.
  faults::Record& Call(CallId call, std::uint64_t handle = 0) {
    faults::Record& record = journal_.Call(call);
    record.stack = 1;
    record.argument[0] = handle;
    return record;
  }
  std::vector<std::uint64_t> States(StatesAre are = StatesAre::Exact) {
    const Observation seen = journal_.Read();
    std::vector<std::uint64_t> states;
    for (const CallState& call : StatesOf(seen.evidence(), {}, are).calls) states.push_back(call.state);
    return states;
  }

  TemporaryDir dir_;
  JournalBuilder journal_{dir_.File("journal"), 20000};
};

TEST_F(CallStateTest, EqualPlacesWithEqualObjectsAreOneState) {
  for (int turn = 0; turn < 2; ++turn) {
    Call(CallId::StreamCreate, 0x10);
    Call(CallId::StreamDestroy_v2, 0x10);
  }
  const std::vector<std::uint64_t> states = States();
  EXPECT_EQ(states[0], states[2]);
  EXPECT_EQ(states[1], states[3]);
  EXPECT_NE(states[0], states[1]);
}

TEST_F(CallStateTest, CountsAreToldApart) {
  for (std::uint64_t i = 1; i <= 100; ++i) Call(CallId::MemAlloc_v2, i * 0x1000);
  const std::vector<std::uint64_t> states = States();
  EXPECT_THAT(std::set<std::uint64_t>(states.begin(), states.end()), SizeIs(100));
}

TEST_F(CallStateTest, CyclesAreToldApartUnlessStatesAreCoarse) {
  Call(CallId::CtxSynchronize).cycle = 1;
  Call(CallId::CtxSynchronize).cycle = 2;
  EXPECT_NE(States()[0], States()[1]);
  EXPECT_EQ(States(StatesAre::Coarse)[0], States(StatesAre::Coarse)[1]);
}

TEST_F(CallStateTest, CoarseCountsAreToldApartUpToTwo) {
  for (std::uint64_t i = 1; i <= 8200; ++i) Call(CallId::MemAlloc_v2, i * 0x1000);
  const std::vector<std::uint64_t> states = States(StatesAre::Coarse);
  EXPECT_THAT(std::set<std::uint64_t>(states.begin(), states.end()), SizeIs(4)) << "none, one, two, many";
  EXPECT_EQ(states[3], states[8199]);
}

TEST_F(CallStateTest, TwoCountsThatMoveApartDoNotCancelOut) {
  // k streams, then for each one fewer an event more: every sum of the counts is the same, no state is.
  std::set<std::uint64_t> states;
  for (std::uint64_t streams = 0; streams <= 2; ++streams) {
    JournalBuilder journal(dir_.File("of-" + std::to_string(streams)));
    for (std::uint64_t i = 0; i < 2; ++i) {
      faults::Record& made = journal.Call(i < streams ? CallId::StreamCreate : CallId::EventCreate);
      made.stack = 1;
      made.argument[0] = 0x10 + i;
    }
    journal.Call(CallId::CtxSynchronize).stack = 1;
    const Observation seen = journal.Read();
    states.insert(StatesOf(seen.evidence()).calls.back().state);
  }
  EXPECT_THAT(states, SizeIs(3));
}

TEST_F(CallStateTest, PhasesAreStatesOfTheirOwn) {
  Call(CallId::CtxSynchronize);
  Call(CallId::CtxSynchronize).phase = faults::Phase::Teardown;
  EXPECT_NE(States()[0], States()[1]);
}

TEST_F(CallStateTest, IsUnknownWithoutACallStackAndWithSeveralThreads) {
  journal_.Call(CallId::CtxSynchronize);
  EXPECT_EQ(States()[0], 0U);
  Call(CallId::CtxSynchronize);
  EXPECT_NE(States()[1], 0U);
  Call(CallId::CtxSynchronize).tid = 7;
  for (const std::uint64_t state : States()) EXPECT_EQ(state, 0U);
}

TEST_F(CallStateTest, WhatWasLostForGoodDoesNotCount) {
  Call(CallId::CtxSynchronize);
  const std::uint64_t before = States()[0];
  JournalBuilder rehearsal(dir_.File("rehearsal"));
  rehearsal.Call(CallId::Init);
  JournalBuilder trial(dir_.File("trial"));
  faults::Record& lost = trial.Call(CallId::StreamCreate);
  lost.argument[0] = 0x10;
  lost.stack = 1;
  trial.Call(CallId::CtxSynchronize).stack = 1;
  const Observation first = rehearsal.Read();
  const Observation then = trial.Read();
  const std::vector<bool> without = LostBeyond(Rehearsed(first.evidence()), then.evidence());
  EXPECT_EQ(StatesOf(then.evidence(), without).calls[1].state, before);
  EXPECT_NE(StatesOf(then.evidence()).calls[1].state, before);
}

TEST_F(CallStateTest, WhatTheRehearsalAlsoLeavesIsNotLost) {
  JournalBuilder rehearsal(dir_.File("rehearsal"));
  JournalBuilder trial(dir_.File("trial"));
  for (JournalBuilder* const one : {&rehearsal, &trial}) {
    faults::Record& left = one->Call(CallId::StreamCreate);
    left.argument[0] = 0x10;
    left.stack = 1;
  }
  const Observation first = rehearsal.Read();
  const Observation then = trial.Read();
  EXPECT_THAT(LostBeyond(Rehearsed(first.evidence()), then.evidence()), testing::ElementsAre(false));
}

}  // namespace
}  // namespace cuaudit::harness::call_state_test
