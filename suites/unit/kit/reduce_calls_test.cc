// SPDX-License-Identifier: MIT
#include "harness/kit/reduce_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/kit/kit_lists.h"

namespace cuaudit::harness::reduce_calls_test {
namespace {

using driver::Kind;
using kit_lists::Call;
using kit_lists::CallId;
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

JudgeOptions Options() {
  JudgeOptions options;
  options.abandoned_is_leak = true;
  return options;
}

TEST(ReduceCalls, KeepsWhatLosesTheStreamAndNothingElse) {
  DefectJudge judge(Options());
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

TEST(ReduceCalls, SaysWhatIsShownInsteadOfWhatWasWanted) {
  DefectJudge judge(Options());
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
  DefectJudge judge(Options());
  const Result<Reduction> reduction = ReduceCalls(list, kLostStream, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_TRUE(reduction->unlike.empty());
  EXPECT_EQ(reduction->list.stages[0].steps.size(), 4U);
}

// A worker had a context of its own current, and let go of it.
TEST(ReduceCalls, TheContextsOfOtherThreadsAreLeftOutWhereTheyAreInTheWay) {
  CallList list = LosesAStream();
  Step none = Call(CallId::CtxSetCurrent, {Number(0)});
  none.thread = 1;
  list.stages[0].steps.push_back(none);
  DefectJudge judge(Options());
  const Result<Reduction> reduction = ReduceCalls(list, kLostStream, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_EQ(CountCalls(reduction->list), 9U);
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
  DefectJudge judge(Options());
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
  DefectJudge judge(Options());
  const Result<Reduction> reduction = ReduceCalls(list, {{Rule::DoubleRelease, Kind::Stream, 1}}, &judge);
  ASSERT_TRUE(reduction.ok()) << reduction.status().message();
  EXPECT_THAT(CallsOf(reduction->list.stages[0].steps),
              ElementsAre(CallId::Init, CallId::DevicePrimaryCtxRetain, CallId::CtxSetCurrent, CallId::StreamCreate,
                          CallId::StreamDestroy_v2, CallId::StreamDestroy_v2, CallId::DevicePrimaryCtxRelease_v2));
}

// The program leaves its context on the stack until it destroys it. After the failed push, the same instruction pushes again, and another
// one than the first pop takes that entry off: in order. Only without the second push does that pop take what is not there.
TEST(DefectJudge, CallsOfOneEntryPointComeFromAsManyInstructionsAsInTheProgram) {
  const Step push = Call(CallId::CtxPushCurrent_v2, {Of(0)});
  const Step pop = Call(CallId::CtxPopCurrent_v2, {To(2)});
  const Step destroy = Call(CallId::CtxDestroy_v2, {Of(0)});
  Step again = push;
  again.stack = Call(CallId::Init, {}).stack;
  faults::Fault fault;
  fault.base = driver::BaseId::CtxPushCurrent;
  fault.code = CUDA_ERROR_INVALID_CONTEXT;
  Stage first;
  first.steps = {Call(CallId::Init, {Number(0)}), Call(CallId::CtxCreate_v2, {To(0), Number(4), Number(0)}),
                 Call(CallId::CtxPopCurrent_v2, {To(1)})};
  first.failing = FailingStep{push, fault};
  first.rest = {destroy};
  Stage second;
  second.steps = {again, pop, destroy};
  CallList list;
  list.variables = {{"CUcontext"}, {"CUcontext"}, {"CUcontext"}};
  list.stages = {first, second};
  DefectJudge judge(Options());
  const Result<DefectShown> in_order = judge.Look(list);
  ASSERT_TRUE(in_order.ok()) << in_order.status().message();
  EXPECT_THAT(in_order->wrong, ElementsAre());
  list.stages[1].steps = {pop, destroy};
  const Result<DefectShown> too_many = judge.Look(list);
  ASSERT_TRUE(too_many.ok()) << too_many.status().message();
  EXPECT_THAT(too_many->wrong, ElementsAre(Wrong{Rule::Deficit, Kind::ContextStackEntry, 1}));
}

TEST(Together, AddsWhatHasOneRuleAndKind) {
  EXPECT_THAT(Together({{Rule::Leak, Kind::Stream, 1}, {Rule::Leak, Kind::Event, 1}, {Rule::Leak, Kind::Stream, 2}}),
              ElementsAre(Wrong{Rule::Leak, Kind::Stream, 3}, Wrong{Rule::Leak, Kind::Event, 1}));
}

}  // namespace
}  // namespace cuaudit::harness::reduce_calls_test
