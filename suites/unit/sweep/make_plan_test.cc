// SPDX-License-Identifier: MIT
// The plan of a sweep: what is tried, calls addressed by their stacks, and the file.
#include "harness/sweep/plan/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/sweep/plan/call_state.h"
#include "harness/sweep/plan/plan_file.h"
#include "suites/support/journal_builder.h"

namespace cuaudit::harness::make_plan_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class MakePlanTest : public ::testing::Test {
 protected:
  PlannedFaults Plan(const PlanOptions& options = PlanOptions()) {
    const Observation seen = journal_.Read();
    return MakePlan(StatesOf(seen.evidence(), {}, StatesFor(options.prune)), options);
  }

  TemporaryDir dir_;
  JournalBuilder journal_{dir_.File("journal")};
};

// What a plan for shards writes down is the plan of a sweep.
TEST_F(MakePlanTest, ListsTheFaultsThatItTakes) {
  for (const CallId call : {CallId::Init, CallId::MemAlloc_v2, CallId::MemFree_v2}) journal_.Call(call);
  const Observation seen = journal_.Read();
  const CallStates states = StatesOf(seen.evidence(), {}, StatesAre::Coarse);
  for (const std::size_t limit : {0U, 1U, 5U}) {
    for (const bool all_codes : {false, true}) {
      PlanOptions options;
      options.hows = {"refuse", "refuse+garbage", "burst:3"};
      options.limit = limit;
      options.all_codes = all_codes;
      options.calls = {"cuMemAlloc", "cuMemFree"};
      const PlannedFaults plan = MakePlan(states, options);
      std::vector<std::string> faults;
      std::vector<std::uint64_t> sites;
      const std::uint64_t count = ListFaults(states, options, false, [&](std::string_view fault, std::uint64_t site) {
        faults.emplace_back(fault);
        sites.push_back(site);
      });
      EXPECT_EQ(count, plan.faults.size());
      EXPECT_EQ(faults, plan.faults);
      EXPECT_EQ(sites, plan.sites);
    }
  }
}

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
  const PlannedFaults plan = Plan({.calls = {"cuMemAlloc"}});
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
  options.prune = Pruning::All;
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
  options.prune = Pruning::All;
  EXPECT_THAT(MakePlan(states, options).faults, SizeIs(4));
}

TEST_F(MakePlanTest, TriesEveryWayAndEveryCodeWhenAsked) {
  journal_.Call(CallId::MemFree_v2);
  PlanOptions options;
  options.hows = {"refuse", "after", "burst:3"};
  EXPECT_THAT(Plan(options).faults, ElementsAre(HasSubstr(",refuse"), HasSubstr(",after"), HasSubstr(",refuse,burst=3")));
  options.hows = {"burst"};
  EXPECT_THAT(Plan(options).faults, ElementsAre(HasSubstr(",refuse,burst=2")));
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

TEST_F(MakePlanTest, NeverCarriesOutAndDeniesWhatTheDriverDeclines) {
  journal_.Call(CallId::StreamQuery).result = CUDA_ERROR_NOT_READY;
  journal_.Call(CallId::StreamQuery);
  PlanOptions options;
  options.hows = {"refuse", "after"};
  const PlannedFaults plan = Plan(options);
  EXPECT_THAT(plan.faults, ElementsAre("cuStreamQuery#1=INVALID_CONTEXT,refuse", "cuStreamQuery#2=INVALID_CONTEXT,refuse",
                                       "cuStreamQuery#2=INVALID_CONTEXT,after"));
  EXPECT_EQ(plan.possible, 3U) << "it is no way to fail that was left out";
  EXPECT_EQ(plan.skipped.at(Reason::Declined), 1U);
}

TEST_F(MakePlanTest, WhatTheDriverDeclinesStandsForNothingUnderAfter) {
  journal_.StackIn(1, "/program");
  for (const CUresult result : {CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUDA_SUCCESS}) {
    faults::Record& call = journal_.Call(CallId::StreamQuery);
    call.stack = 1;
    call.result = result;
  }
  PlanOptions options;
  options.hows = {"refuse", "after"};
  options.prune = Pruning::All;
  const PlannedFaults plan = Plan(options);
  EXPECT_THAT(plan.faults, ElementsAre("cuStreamQuery#1=INVALID_CONTEXT,refuse", "cuStreamQuery#2=INVALID_CONTEXT,after"));
  EXPECT_EQ(plan.skipped.at(Reason::Declined), 1U);
  EXPECT_EQ(plan.pruned.at(Reason::FirstSameState), 3U);
}

TEST_F(MakePlanTest, TriesAWayOnceHoweverOftenItIsNamed) {
  journal_.Call(CallId::MemAlloc_v2);
  PlanOptions options;
  options.hows = {"refuse", "burst", "burst:2", "burst:3", "refuse"};
  const PlannedFaults plan = Plan(options);
  EXPECT_THAT(plan.faults, ElementsAre("cuMemAlloc#1=OUT_OF_MEMORY,refuse", "cuMemAlloc#1=OUT_OF_MEMORY,refuse,burst=2",
                                       "cuMemAlloc#1=OUT_OF_MEMORY,refuse,burst=3"));
  EXPECT_EQ(plan.possible, 3U);
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
  EXPECT_THAT(CheckPlanOptions(options).message(), HasSubstr("expected burst, or burst:K with a count K from 1"));
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

PlanFile Sample() {
  PlanFile plan;
  plan.subject = 0x1234;
  plan.settings = {{"--depth", "2"}, {"the command", "\"a = b\""}};
  plan.faults = {"cuInit#1=INVALID_VALUE,refuse", "cuMemAlloc#2=OUT_OF_MEMORY,after"};
  plan.sites = {0xfedcba9876543210U, 0};
  return plan;
}

std::string WhyNot(const std::string& text) {
  const Result<PlanFile> plan = ParsePlan(text, "plan.txt");
  EXPECT_FALSE(plan.ok()) << text;
  EXPECT_EQ(plan.status().exit(), Exit::Usage);
  EXPECT_EQ(plan.status().message().find('\n'), std::string::npos);
  return plan.status().message();
}

TEST(PlanFile, RoundTrips) {
  const Result<PlanFile> read = ParsePlan(FormatPlan(Sample()), "plan.txt");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, Sample());
}

TEST(PlanFile, RoundTripsWithoutFaults) {
  PlanFile plan;
  const Result<PlanFile> read = ParsePlan(FormatPlan(plan), "plan.txt");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, plan);
}

TEST(PlanFile, DigestTellsSubjectFaultsAndOrderApart) {
  PlanFile other = Sample();
  other.subject = 0x1235;
  EXPECT_NE(other.Digest(), Sample().Digest());
  other = Sample();
  std::swap(other.faults[0], other.faults[1]);
  EXPECT_NE(other.Digest(), Sample().Digest());
  other = Sample();
  other.sites[1] = 7;
  EXPECT_NE(other.Digest(), Sample().Digest());
  other = Sample();
  other.faults.pop_back();
  other.sites.pop_back();
  EXPECT_NE(other.Digest(), Sample().Digest());
  other = Sample();
  other.settings["--depth"] = "1";
  EXPECT_NE(other.Digest(), Sample().Digest());
}

TEST(PlanFile, SaysWhichSettingsDiffer) {
  const Settings before = {{"--depth", "2"}, {"--host", "false"}, {"LEAKY", "#1"}};
  EXPECT_EQ(Differences(before, before), "");
  EXPECT_EQ(Differences(before, {{"--depth", "1"}, {"--host", "false"}, {"LEAKY", "#2"}}), "--depth was 2 and is 1, LEAKY differs");
  EXPECT_EQ(Differences(before, {{"--depth", "2"}, {"--host", "false"}}), "LEAKY differs");
  EXPECT_EQ(Differences({}, {{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}}), "a differs, b differs, c differs and 1 more");
}

TEST(PlanFile, RefusesASettingWithoutAValue) {
  std::string text = FormatPlan(Sample());
  text.replace(text.find("--depth = "), 10, "--depth=  ");
  EXPECT_THAT(WhyNot(text), HasSubstr("plan.txt:2: expected '# NAME = VALUE'"));
}

TEST(PlanFile, RefusesAnotherFirstLine) {
  for (const char* const text :
       {"", "\n", "cuaudit-plan 1 x\n", "cuaudit-plan 2 subject=0000000000000000 faults=0 digest=0000000000000000\n",
        "cuaudit-plan 3 subject=12 faults=0 digest=0\n", "cuaudit-plan 3 subject=0000000000000000 faults=x digest=0000000000000000\n",
        "cuaudit-plan 3 subject=0000000000000000 faults=0 digest=0000000000000000 more\n"}) {
    EXPECT_THAT(WhyNot(text), HasSubstr("plan.txt:1: expected ")) << text;
  }
}

TEST(PlanFile, NamesLineAndColumnOfAMalformedFault) {
  std::string text = FormatPlan(Sample());
  text.replace(text.find("cuMemAlloc#2"), 12, "cuMemAlloc#0");
  EXPECT_THAT(WhyNot(text), HasSubstr("plan.txt:5:12: expected "));
}

TEST(PlanFile, RefusesACutFileAtEveryByte) {
  const std::string text = FormatPlan(Sample());
  for (std::size_t size = 0; size < text.size(); ++size) WhyNot(text.substr(0, size));
}

TEST(PlanFile, RefusesAMissingOrExtraLine) {
  const std::string text = FormatPlan(Sample());
  EXPECT_THAT(WhyNot(text.substr(0, text.find("cuMemAlloc"))), HasSubstr("2 faults, found 1"));
  EXPECT_THAT(WhyNot(text + "cuInit#2=INVALID_VALUE,refuse site=0000000000000001\n"), HasSubstr("2 faults, found 3"));
}

TEST(PlanFile, RefusesALineWithoutItsSite) {
  const std::string text = FormatPlan(Sample());
  const std::size_t site = text.find(" site=");
  for (const char* const instead : {"", " site=", " site=12", " site=fedcba9876543210 more", " 7"}) {
    std::string changed = text;
    EXPECT_THAT(WhyNot(changed.replace(site, 22, instead)), HasSubstr("plan.txt:4")) << instead;
  }
}

TEST(PlanFile, RefusesAChangedLine) {
  std::string text = FormatPlan(Sample());
  text.replace(text.find("cuMemAlloc#2"), 12, "cuMemAlloc#3");
  EXPECT_THAT(WhyNot(text), HasSubstr("the plan was changed"));
}

}  // namespace
}  // namespace cuaudit::harness::make_plan_test
