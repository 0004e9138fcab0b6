// SPDX-License-Identifier: MIT
// The fewest calls that show a defect.
#include "harness/kit/reduce_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/kit/defect_shown.h"
#include "suites/unit/kit/kit_lists.h"

namespace cuaudit::harness::reduce_calls_test {
namespace {

using driver::Kind;
using kit_lists::Call;
using kit_lists::CallId;
using kit_lists::kAbandonedIsLeak;
using kit_lists::LeavesALimit;
using kit_lists::LosesAStream;
using kit_lists::Number;
using kit_lists::Of;
using kit_lists::To;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<Wrong> kLostStream = {{Rule::Orphaned, Kind::Stream, 1}};

std::vector<CallId> CallsOf(const std::vector<Step>& steps) {
  std::vector<CallId> calls;
  for (const Step& step : steps) calls.push_back(step.call);
  return calls;
}

TEST(ReduceCalls, KeepsWhatLosesTheStreamAndNothingElse) {
  DefectJudge judge(kAbandonedIsLeak);
  const Result<Reduction> reduction = ReduceCalls(LosesAStream(), kLostStream, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_EQ(reduction->before, 16U);
  const CallList& list = reduction->list;
  ASSERT_EQ(list.stages.size(), 2U);
  EXPECT_THAT(CallsOf(list.stages[0].steps),
              ElementsAre(CallId::Init, CallId::DevicePrimaryCtxRetain, CallId::CtxSetCurrent, CallId::StreamCreate));
  EXPECT_THAT(CallsOf(list.stages[0].rest),
              ElementsAre(CallId::EventDestroy_v2, CallId::StreamDestroy_v2, CallId::DevicePrimaryCtxRelease_v2));
  EXPECT_THAT(CallsOf(list.stages[1].steps), ElementsAre(CallId::DevicePrimaryCtxRelease_v2));
  EXPECT_THAT(FaultsOf(list), ElementsAre("cuEventCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_TRUE(reduction->unlike.empty());
}

// What is told counts up to what was planned, and what is left is what the reduction ends with.
TEST(ReduceCalls, TellsHowFarItHasCome) {
  DefectJudge judge(kAbandonedIsLeak);
  std::vector<ReducedSoFar> told;
  const Result<Reduction> reduction =
      ReduceCalls(LosesAStream(), kLostStream, &judge, [&](const ReducedSoFar& now) { told.push_back(now); });
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  ASSERT_GT(told.size(), 10U);
  for (std::size_t i = 0; i < told.size(); ++i) {
    const bool begins = i == 0 || told[i].pass == told[i - 1].pass + 1;
    EXPECT_TRUE(begins || told[i].pass == told[i - 1].pass);
    EXPECT_EQ(told[i].tried, begins ? 0 : told[i - 1].tried + 1);
    EXPECT_LT(told[i].tried, told[i].planned);
    EXPECT_EQ(told[i].before, reduction->before);
    if (i != 0) {
      EXPECT_LE(told[i].left, told[i - 1].left);
    }
  }
  EXPECT_EQ(told.front().left, reduction->before);
  EXPECT_EQ(told.back().left, CountCalls(reduction->list));
  EXPECT_GE(told.back().pass, 2U) << "the last pass leaves nothing out";
}

TEST(ReduceCalls, SaysWhatIsShownInsteadOfWhatWasWanted) {
  DefectJudge judge(kAbandonedIsLeak);
  for (const Wrong& wanted : {Wrong{Rule::Orphaned, Kind::Stream, 2}, Wrong{Rule::Leak, Kind::Event, 1}}) {
    const Result<Reduction> reduction = ReduceCalls(LosesAStream(), {wanted}, &judge);
    ASSERT_FALSE(reduction.ok());
    EXPECT_EQ(reduction.status().exit(), Exit::Environment);
    EXPECT_THAT(reduction.status().message(), HasSubstr("show orphaned stream 1"));
  }
}

TEST(ReduceCalls, ACallThatFailsInTheReplayAloneIsLeftOut) {
  CallList list = LosesAStream();
  list.stages[0].steps.push_back(Call(CallId::StreamDestroy_v2, {Number(0)}));
  DefectJudge judge(kAbandonedIsLeak);
  const Result<Reduction> reduction = ReduceCalls(list, kLostStream, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_TRUE(reduction->unlike.empty());
  EXPECT_EQ(reduction->list.stages[0].steps.size(), 4U);
}

Step InCycle(std::uint32_t cycle, Step step) {
  step.cycle = cycle;
  return step;
}

// Three marked cycles. The first makes a stream that the end destroys, the others leave an event. `warms_up`: the first one makes the
// context, too.
CallList GrowsFromTheSecondCycle(bool warms_up) {
  enum { kContext, kStream, kEvent, kLater };
  CallList list;
  for (const char* const type : {"CUcontext", "CUstream", "CUevent", "CUevent"}) list.variables.push_back({type});
  const std::uint32_t begin = warms_up ? 1 : 0;
  Stage only;
  only.steps = {Call(CallId::Init, {Number(0)}),
                InCycle(begin, Call(CallId::DevicePrimaryCtxRetain, {To(kContext), Number(0)})),
                InCycle(begin, Call(CallId::CtxSetCurrent, {Of(kContext)})),
                InCycle(1, Call(CallId::StreamCreate, {To(kStream), Number(0)})),
                InCycle(2, Call(CallId::EventCreate, {To(kEvent), Number(0)})),
                InCycle(3, Call(CallId::EventCreate, {To(kLater), Number(0)})),
                Call(CallId::StreamSynchronize, {Of(kStream)}),
                Call(CallId::StreamDestroy_v2, {Of(kStream)})};
  list.stages = {std::move(only)};
  return list;
}

TEST(ReduceToOneCycle, TakesTheFirstCycleThatLeavesTheDefect) {
  for (const bool warms_up : {false, true}) {
    const CallList list = GrowsFromTheSecondCycle(warms_up);
    DefectJudge judge{JudgeOptions()};
    const Result<Reduction> reduction = ReduceToOneCycle(list, {{Rule::LeftAtExit, Kind::Event, 1}}, &judge);
    ASSERT_TRUE(reduction.ok()) << reduction.status().message();
    EXPECT_EQ(reduction->before, 8U);
    const std::vector<Step>& steps = reduction->list.stages.front().steps;
    EXPECT_THAT(CallsOf(steps), ElementsAre(CallId::Init, CallId::DevicePrimaryCtxRetain, CallId::CtxSetCurrent, CallId::EventCreate));
    EXPECT_EQ(steps.back().cycle, 2U);
    EXPECT_TRUE(reduction->unlike.empty());
  }
}

TEST(ReduceToOneCycle, TellsWhichCycleItTries) {
  DefectJudge judge{JudgeOptions()};
  std::vector<ReducedSoFar> told;
  const auto tell = [&](const ReducedSoFar& now) { told.push_back(now); };
  ASSERT_TRUE(ReduceToOneCycle(GrowsFromTheSecondCycle(false), {{Rule::LeftAtExit, Kind::Event, 1}}, &judge, tell).ok());
  const auto cycles = std::count_if(told.begin(), told.end(), [](const ReducedSoFar& now) { return now.pass == 0; });
  EXPECT_EQ(cycles, 2) << "the second of three cycles shows it";
  ASSERT_GT(told.size(), 3U);
  EXPECT_EQ(told[0].planned, 5U) << "each of three cycles alone, and two after the first";
  EXPECT_EQ(told[1].tried, 1U);
  EXPECT_EQ(told[2].pass, 1U);
}

TEST(ReduceToOneCycle, SaysWhatTheFirstCycleShows) {
  DefectJudge judge{JudgeOptions()};
  const Result<Reduction> reduction = ReduceToOneCycle(GrowsFromTheSecondCycle(false), {{Rule::LeftAtExit, Kind::Stream, 1}}, &judge);
  EXPECT_EQ(reduction.status().exit(), Exit::Environment);
  EXPECT_THAT(reduction.status().message(), HasSubstr("made again one after the other, show "));
}

// A worker had a context of its own current, and let go of it.
TEST(ReduceCalls, TheContextsOfOtherThreadsAreLeftOutWhereTheyAreInTheWay) {
  CallList list = LosesAStream();
  Step none = Call(CallId::CtxSetCurrent, {Number(0)});
  none.thread = 1;
  list.stages[0].steps.push_back(none);
  DefectJudge judge(kAbandonedIsLeak);
  const Result<Reduction> reduction = ReduceCalls(list, kLostStream, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_EQ(CountCalls(reduction->list), 9U);
}

// The event's failure loses a second stream, which another function made.
TEST(ReduceCalls, WhatAnotherDefectLosesIsLeftOut) {
  CallList list = LosesAStream();
  list.variables.push_back({"CUstream"});
  const int second = static_cast<int>(list.variables.size()) - 1;
  list.stages[0].steps.push_back(Call(CallId::StreamCreate, {To(second), Number(0)}, "elsewhere, b.c:1"));
  list.stages[0].rest.insert(list.stages[0].rest.begin(), Call(CallId::StreamDestroy_v2, {Of(second)}));
  DefectJudge judge(kAbandonedIsLeak);
  EXPECT_THAT(ReduceCalls(list, kLostStream, &judge).status().message(), HasSubstr("show orphaned stream 2"));
  list.stages[0].steps.back().of_defect = true;
  const Result<Reduction> reduction = ReduceCalls(list, kLostStream, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_THAT(CallsOf(reduction->list.stages[0].steps),
              ElementsAre(CallId::Init, CallId::DevicePrimaryCtxRetain, CallId::CtxSetCurrent, CallId::StreamCreate));
  EXPECT_EQ(reduction->list.stages[0].steps.back().place, "elsewhere, b.c:1");
}

// At its exit the program releases the context, and the driver is shut down already.
TEST(ReduceCalls, WhatFailedInTheProgramMayNotSucceedHere) {
  CallList list = LosesAStream();
  list.stages[0].rest.back().succeeded = list.stages[1].steps.back().succeeded = false;
  DefectJudge judge(kAbandonedIsLeak);
  const Result<Reduction> reduction = ReduceCalls(list, {{Rule::Leak, Kind::Stream, 1}}, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_TRUE(reduction->list.stages[1].steps.empty());
}

TEST(ReduceCalls, SaysWhatIsMissing) {
  DefectJudge judge(kAbandonedIsLeak);
  CallList fails = LosesAStream();
  fails.stages[0].failing->step.values[1] = Number(0xffff);
  EXPECT_THAT(ReduceCalls(fails, kLostStream, &judge).status().message(),
              HasSubstr("show nothing wrong: cuEventCreate, which is to fail, fails without the fault, too"));
  CallList lacks = LosesAStream();
  lacks.stages[0].steps[3].values[1] = Number(0xffff);
  EXPECT_THAT(ReduceCalls(lacks, kLostStream, &judge).status().message(),
              HasSubstr("calls that succeeded in the program and fail here: 1 cuStreamCreate"));
}

const std::vector<Wrong> kLeftSetting = {{Rule::SettingNotRestored, Kind::None, 1}};

TEST(ReduceCalls, KeepsTheQuestionTheChangeAndTheWayBackOfASetting) {
  DefectJudge judge(kAbandonedIsLeak);
  const Result<Reduction> reduction = ReduceCalls(LeavesALimit(), kLeftSetting, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  const CallList& list = reduction->list;
  ASSERT_EQ(list.stages.size(), 2U);
  EXPECT_THAT(CallsOf(list.stages[0].steps),
              ElementsAre(CallId::Init, CallId::DevicePrimaryCtxRetain, CallId::CtxSetCurrent, CallId::CtxGetLimit, CallId::CtxSetLimit));
  EXPECT_THAT(CallsOf(list.stages[0].rest), ElementsAre(CallId::MemFree_v2, CallId::CtxSetLimit, CallId::DevicePrimaryCtxRelease_v2));
  EXPECT_THAT(CallsOf(list.stages[1].steps), ElementsAre(CallId::MemAlloc_v2, CallId::MemFree_v2, CallId::DevicePrimaryCtxRelease_v2));
}

TEST(ReduceCalls, SaysWhatAReducerOfASettingLacks) {
  DefectJudge judge(kAbandonedIsLeak);
  CallList one_function = LeavesALimit();
  for (std::vector<Step>* const steps : {&one_function.stages[0].rest, &one_function.stages[1].steps}) {
    for (Step& step : *steps) step.goes_on = false;
  }
  for (const Wrong& wanted :
       {kLeftSetting.front(), Wrong{Rule::ContextNotRestored, Kind::Context, 1}, Wrong{Rule::CaptureLeftActive, Kind::Stream, 1}}) {
    EXPECT_THAT(ReduceCalls(one_function, {wanted}, &judge).status().message(),
                ::testing::EndsWith("show nothing wrong; missing: a call after the function that made the change had returned"));
  }
  CallList ends = LeavesALimit();
  std::vector<Step>& path = ends.stages[1].steps;
  path.erase(path.begin(), path.begin() + 2);
  EXPECT_THAT(ReduceCalls(ends, kLeftSetting, &judge).status().message(),
              HasSubstr("show nothing wrong; missing: a call that works with what was changed"));
}

TEST(ReduceCalls, WithoutAFaultWhatIsLeftIsKept) {
  CallList list;
  list.variables = {{"CUcontext"}, {"CUstream"}, {"CUevent"}};
  Stage only;
  only.steps = {Call(CallId::Init, {Number(0)}),
                Call(CallId::DevicePrimaryCtxRetain, {To(0), Number(0)}),
                Call(CallId::CtxSetCurrent, {Of(0)}),
                Call(CallId::StreamCreate, {To(1), Number(0)}),
                Call(CallId::EventCreate, {To(2), Number(0)}),
                Call(CallId::StreamDestroy_v2, {Of(1)})};
  list.stages = {only};
  DefectJudge judge(kAbandonedIsLeak);
  const Result<Reduction> reduction = ReduceCalls(list, {{Rule::LeftAtExit, Kind::Event, 1}}, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_THAT(CallsOf(reduction->list.stages[0].steps),
              ElementsAre(CallId::Init, CallId::DevicePrimaryCtxRetain, CallId::CtxSetCurrent, CallId::EventCreate));
  EXPECT_THAT(FaultsOf(reduction->list), ElementsAre());
}

TEST(ReduceCalls, ADoubleReleaseNeedsBothReleases) {
  CallList list;
  list.variables = {{"CUcontext"}, {"CUstream"}, {"CUdeviceptr"}};
  Stage only;
  only.steps = {Call(CallId::Init, {Number(0)}),
                Call(CallId::DevicePrimaryCtxRetain, {To(0), Number(0)}),
                Call(CallId::CtxSetCurrent, {Of(0)}),
                Call(CallId::StreamCreate, {To(1), Number(0)}),
                Call(CallId::MemAlloc_v2, {To(2), Number(64)}),
                Call(CallId::StreamDestroy_v2, {Of(1)}),
                Call(CallId::StreamDestroy_v2, {Of(1)}),
                Call(CallId::MemFree_v2, {Of(2)}),
                Call(CallId::DevicePrimaryCtxRelease_v2, {Number(0)})};
  only.steps[6].succeeded = false;
  list.stages = {only};
  DefectJudge judge(kAbandonedIsLeak);
  const Result<Reduction> reduction = ReduceCalls(list, {{Rule::DoubleRelease, Kind::Stream, 1}}, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_THAT(CallsOf(reduction->list.stages[0].steps),
              ElementsAre(CallId::Init, CallId::DevicePrimaryCtxRetain, CallId::CtxSetCurrent, CallId::StreamCreate,
                          CallId::StreamDestroy_v2, CallId::StreamDestroy_v2, CallId::DevicePrimaryCtxRelease_v2));
}

}  // namespace
}  // namespace cuaudit::harness::reduce_calls_test
