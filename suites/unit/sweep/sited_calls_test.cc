// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/sited_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "harness/sweep/plan/make_plan.h"
#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::sited_calls_test {
namespace {

using driver::CallId;
using testing::ElementsAre;
using testing::EndsWith;
using testing::SizeIs;

struct Made {
  CallId call;
  std::uint32_t thread;
};

// Journals of several runs, without call stacks: each entry point is one place.
class SitedCallsTest : public testing::Test {
 protected:
  void Run(std::initializer_list<Made> calls) {
    JournalBuilder journal(dir_.File("run-" + std::to_string(runs_.size())));
    for (const Made& made : calls) journal.Call(made.call).tid = made.thread;
    runs_.push_back(journal.Read());
  }
  CallStates Sited() {
    std::vector<CallStates> states;
    for (const Observation& run : runs_) states.push_back(StatesOf(run.evidence()));
    return SitedCalls(states);
  }
  // "cuMemAlloc#2", with '?' when not every run comes there that often and '+' when earlier turns stand for it.
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    const CallStates sited = Sited();
    for (const CallState& call : sited.calls) {
      const auto base = driver::BaseOf(static_cast<CallId>(call.record->call));
      texts.push_back(std::string(driver::Name(base)) + "#" + std::to_string(call.turn) + (call.unsure ? "?" : "") +
                      (call.again ? "+" : ""));
    }
    return texts;
  }

  TemporaryDir dir_;
  std::vector<Observation> runs_;
};

TEST_F(SitedCallsTest, ThreadsThatTakeTurnsInAnotherOrderComeToTheSamePlacesAsOften) {
  Run({{CallId::StreamCreate, 1}, {CallId::MemAlloc_v2, 2}, {CallId::StreamCreate, 1}});
  const std::vector<std::string> before = Texts();
  runs_.clear();
  Run({{CallId::MemAlloc_v2, 2}, {CallId::StreamCreate, 1}, {CallId::StreamCreate, 1}});
  EXPECT_EQ(Texts(), before) << "the order is of the places";
  EXPECT_TRUE(Sited().threaded);
}

TEST_F(SitedCallsTest, WhatOnlySomeRunsComeToIsSureOnce) {
  Run({{CallId::Init, 1}, {CallId::MemAlloc_v2, 1}});
  Run({{CallId::Init, 1}, {CallId::StreamCreate, 1}, {CallId::MemAlloc_v2, 1}, {CallId::MemAlloc_v2, 1}, {CallId::StreamCreate, 1}});
  EXPECT_THAT(Texts(), ElementsAre("cuInit#1", "cuMemAlloc#1", "cuStreamCreate#1", "cuMemAlloc#2?", "cuStreamCreate#2?"));
  PlannedFaults plan = MakePlan(Sited(), PlanOptions(), true);
  EXPECT_THAT(plan.faults, SizeIs(3));
  EXPECT_EQ(plan.skipped[Reason::Unsure], 2U);
  EXPECT_EQ(plan.possible, 5U) << "a sweep that tries three is not clean of five";
}

TEST_F(SitedCallsTest, FaultsAreAddressedByPlace) {
  Run({{CallId::MemAlloc_v2, 1}, {CallId::MemAlloc_v2, 2}});
  const PlannedFaults plan = MakePlan(Sited(), PlanOptions(), true);
  EXPECT_THAT(plan.faults, ElementsAre(EndsWith("#1=OUT_OF_MEMORY,refuse"), EndsWith("#2=OUT_OF_MEMORY,refuse")));
  for (const std::string& fault : plan.faults) EXPECT_EQ(fault.find("cuMemAlloc@site="), 0U) << fault;
}

// Two threads: three visits of each, one more, and the last one.
TEST_F(SitedCallsTest, OfManyTurnsTheFirstAndTheLastStandForTheRest) {
  Run({{CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2},
       {CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2},
       {CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2},
       {CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2},
       {CallId::MemAlloc_v2, 1},
       {CallId::MemAlloc_v2, 2}});
  EXPECT_THAT(Texts(), ElementsAre("cuMemAlloc#1", "cuMemAlloc#2", "cuMemAlloc#3", "cuMemAlloc#4", "cuMemAlloc#5", "cuMemAlloc#6",
                                   "cuMemAlloc#7", "cuMemAlloc#8+", "cuMemAlloc#9+", "cuMemAlloc#10"));
  EXPECT_THAT(MakePlan(Sited(), PlanOptions(), true).faults, SizeIs(8));
  PlanOptions all;
  all.prune = Prune::None;
  EXPECT_THAT(MakePlan(Sited(), all, true).faults, SizeIs(10));
}

}  // namespace
}  // namespace cuaudit::harness::sited_calls_test
