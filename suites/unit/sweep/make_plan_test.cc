// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::make_plan_test {
namespace {

using driver::CallId;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

class MakePlanTest : public testing::Test {
 protected:
  PlannedFaults Plan(const PlanOptions& options = PlanOptions()) {
    const Observation seen = journal_.Read();
    return MakePlan(StatesOf(seen.evidence(), {}, StatesFor(options.prune)), options);
  }

  TemporaryDir dir_;
  JournalBuilder journal_{dir_.File("journal")};
};

TEST_F(MakePlanTest, TakesEveryFallibleCallInOrder) {
  journal_.Call(CallId::Init);
  journal_.Call(CallId::MemAlloc_v2);
  journal_.Call(CallId::MemAlloc_v2);
  journal_.Call(CallId::MemFree_v2);
  EXPECT_THAT(Plan().faults, ElementsAre(StartsWith("cuInit#1="), StartsWith("cuMemAlloc#1=OUT_OF_MEMORY,refuse"),
                                         StartsWith("cuMemAlloc#2=OUT_OF_MEMORY,refuse"), StartsWith("cuMemFree#1=")));
}

TEST_F(MakePlanTest, KeepsTheSiteThatEachFaultIsMeantFor) {
  journal_.Call(CallId::MemAlloc_v2);
  journal_.Call(CallId::MemFree_v2);
  journal_.Call(CallId::MemAlloc_v2);
  const PlannedFaults plan = Plan();
  ASSERT_THAT(plan.sites, SizeIs(3));
  EXPECT_NE(plan.sites[0], 0U);
  EXPECT_EQ(plan.sites[0], plan.sites[2]);
  EXPECT_NE(plan.sites[0], plan.sites[1]);
  journal_.header().flags.fetch_or(faults::kStacksDropped);
  EXPECT_EQ(Plan().sites[0], 0U) << "without its stack any site of that call would do";
}

TEST_F(MakePlanTest, LeavesOutAndCountsCallsThatDescribe) {
  journal_.Call(CallId::DriverGetVersion);
  journal_.Call(CallId::Init);
  const PlannedFaults plan = Plan();
  EXPECT_THAT(plan.faults, SizeIs(1));
  EXPECT_EQ(plan.skipped.at(Reason::Describes), 1U);
}

TEST_F(MakePlanTest, LeavesNestedCallsToTheDriver) {
  journal_.Call(CallId::MemAlloc_v2).flags |= faults::kNested;
  EXPECT_THAT(Plan().faults, SizeIs(0));
}

TEST_F(MakePlanTest, OrdersThreadedProgramsByNameAndOccurrence) {
  journal_.Call(CallId::StreamCreate);
  journal_.Call(CallId::MemAlloc_v2).tid = 2;
  EXPECT_THAT(Plan().faults, ElementsAre(StartsWith("cuMemAlloc#1"), StartsWith("cuStreamCreate#1")));
}

TEST_F(MakePlanTest, FiltersByCall) {
  journal_.Call(CallId::Init);
  journal_.Call(CallId::MemAlloc_v2);
  PlanOptions options;
  options.calls = {"cuMemAlloc"};
  const PlannedFaults plan = Plan(options);
  EXPECT_THAT(plan.faults, ElementsAre(StartsWith("cuMemAlloc#1")));
  EXPECT_EQ(plan.skipped.at(Reason::NotChosen), 1U);
  EXPECT_EQ(plan.possible, 2U);
}

TEST_F(MakePlanTest, StopsAtTheLimitAndSaysHowManyAreLeft) {
  for (int i = 0; i < 5; ++i) journal_.Call(CallId::MemAlloc_v2);
  PlanOptions options;
  options.limit = 2;
  const PlannedFaults plan = Plan(options);
  EXPECT_THAT(plan.faults, SizeIs(2));
  EXPECT_EQ(plan.skipped.at(Reason::BeyondLimit), 3U);
  EXPECT_EQ(plan.possible, 5U);
}

TEST_F(MakePlanTest, TriesEveryTurnOfALoopUnlessToldOtherwise) {
  for (int turn = 0; turn < 4; ++turn) journal_.Call(CallId::CtxSynchronize).stack = 1;
  EXPECT_THAT(Plan().faults, SizeIs(4));
  EXPECT_THAT(Plan().pruned, SizeIs(0));
  PlanOptions options;
  options.prune = Prune::All;
  const PlannedFaults plan = Plan(options);
  EXPECT_THAT(plan.faults, SizeIs(1));
  EXPECT_EQ(plan.pruned.at(Reason::FirstSameState), 3U);
  EXPECT_EQ(plan.possible, 4U) << "what is pruned is possible";
}

TEST_F(MakePlanTest, NeverPrunesWhatAnInterpreterCalls) {
  for (int turn = 0; turn < 4; ++turn) journal_.Call(CallId::CtxSynchronize).stack = 1;
  const Observation seen = journal_.Read();
  CallStates states = StatesOf(seen.evidence(), {}, StatesAre::Coarse);
  for (CallState& call : states.calls) call.interpreted = true;
  PlanOptions options;
  options.prune = Prune::All;
  EXPECT_THAT(MakePlan(states, options).faults, SizeIs(4));
}

TEST_F(MakePlanTest, TriesEveryWayAndEveryCodeWhenAsked) {
  journal_.Call(CallId::MemFree_v2);
  PlanOptions options;
  options.hows = {"refuse", "after", "burst:3"};
  EXPECT_THAT(Plan(options).faults, ElementsAre(HasSubstr(",refuse"), HasSubstr(",after"), HasSubstr(",refuse,burst=3")));
  options.hows = {"refuse"};
  options.all_codes = true;
  EXPECT_GT(Plan(options).faults.size(), 2U);
}

// The driver would call the function, though the program has given its argument back.
TEST_F(MakePlanTest, NeverCarriesOutAndDeniesWhatHandsAFunctionOver) {
  journal_.Call(CallId::LaunchHostFunc);
  journal_.Call(CallId::StreamAddCallback);
  journal_.Call(CallId::GraphAddHostNode);
  journal_.Call(CallId::DeviceRegisterAsyncNotification);
  journal_.Call(CallId::DeviceUnregisterAsyncNotification);
  PlanOptions options;
  options.hows = {"after"};
  const PlannedFaults plan = Plan(options);
  EXPECT_THAT(plan.faults, ElementsAre(StartsWith("cuDeviceUnregisterAsyncNotification#1")));
  EXPECT_EQ(plan.possible, 1U) << "it is no way to fail that was left out";
  options.hows = {"refuse"};
  EXPECT_THAT(Plan(options).faults, SizeIs(5));
}

TEST_F(MakePlanTest, FillsGarbageOnlyWhereACallWritesOutput) {
  journal_.Call(CallId::MemAlloc_v2);
  journal_.Call(CallId::MemFree_v2);
  PlanOptions options;
  options.hows = {"refuse+garbage"};
  const PlannedFaults plan = Plan(options);
  EXPECT_THAT(plan.faults, ElementsAre(StartsWith("cuMemAlloc#1")));
  EXPECT_THAT(plan.skipped, SizeIs(1));
}

TEST_F(MakePlanTest, ChoosesACodeThatLosesTheContextForSticky) {
  journal_.Call(CallId::MemAlloc_v2);
  PlanOptions options;
  options.hows = {"sticky"};
  const PlannedFaults plan = Plan(options);
  ASSERT_THAT(plan.faults, SizeIs(1));
  faults::Fault fault;
  EXPECT_EQ(faults::ParseFault(plan.faults.front(), &fault).expected, nullptr) << plan.faults.front();
  EXPECT_EQ(fault.how, faults::How::Sticky);
}

TEST(AddressAfter, ACallWithoutAKnownPlaceKeepsItsNumber) {
  faults::Fault fault;
  fault.base = driver::BaseId::MemFree;
  fault.code = CUDA_ERROR_INVALID_VALUE;
  fault.occurrence = 7;
  AddressAfter(0, 3, &fault);
  EXPECT_EQ(TextOf(fault), "cuMemFree#7=INVALID_VALUE,refuse");
  AddressAfter(0xab, 3, &fault);
  EXPECT_THAT(TextOf(fault), HasSubstr("ab#+3=INVALID_VALUE,refuse"));
}

TEST(PlanOptions, NamesWhatIsNoHowAndNoCall) {
  PlanOptions options;
  EXPECT_TRUE(CheckPlanOptions(options).ok());
  options.hows = {"refuse", "gently"};
  EXPECT_THAT(CheckPlanOptions(options).message(), HasSubstr("'gently': expected one of refuse"));
  for (const HowWord& one : HowWords()) EXPECT_THAT(CheckPlanOptions(options).message(), HasSubstr(std::string(one.word)));
  options.hows = {"burst:0"};
  EXPECT_THAT(CheckPlanOptions(options).message(), HasSubstr("expected burst:K with a count K from 1"));
  for (const HowWord& one : HowWords()) {
    std::string word(one.word);
    if (word.back() == 'K') word.back() = '2';
    options.hows = {word};
    EXPECT_TRUE(CheckPlanOptions(options).ok()) << word;
  }
  options.hows = {"refuse"};
  options.calls = {"cuMemAlloc_v2"};
  EXPECT_THAT(CheckPlanOptions(options).message(), HasSubstr("'cuMemAlloc_v2': expected a driver entry point without version suffix"));
}

}  // namespace
}  // namespace cuaudit::harness::make_plan_test
