// SPDX-License-Identifier: MIT
// What the judge asks before it compares a trial with the rehearsal, and what it knows of an object that is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "harness/verdict/context/put_back.h"
#include "harness/verdict/context/put_back_calls.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/steps.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::judge_parts_test {
namespace {

using driver::CallId;

// Lifecycles in one process compare a trial with the rehearsal only when its own records show that it gave back too much.
TEST(JudgeDetails, PeerAccessDisabledTooOftenShowsInTheTrialAlone) {
  Trace t;
  t.Call(CallId::CtxEnablePeerAccess).In(0, 0xb).Context(0xa);
  t.Call(CallId::CtxEnablePeerAccess).In(0, 0xb).Context(0xa).Fails(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  t.Call(CallId::CtxDisablePeerAccess).In(0, 0xb).Context(0xa);
  EXPECT_FALSE(harness::MayGiveTooMuch(JournalImage(t).Evidence()));
  t.Call(CallId::CtxDisablePeerAccess).In(0, 0xb).Context(0xa).Fails(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT_FALSE(harness::MayGiveTooMuch(JournalImage(t).Evidence())) << "that answer does not tell whether there was any";
  t.Call(CallId::CtxDisablePeerAccess).In(0, 0xb).Context(0xa).Fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_TRUE(harness::MayGiveTooMuch(JournalImage(t).Evidence()));
}

// The context took it along later. Where the release was, and what it was answered, says more than where the context ended.
TEST(JudgeDetails, AnOrphanWhoseReleaseWasDeclinedSaysSo) {
  const auto program = [](bool faulted) {
    Trace t;
    t.Retain(0xa).Stack(1);
    t.Alloc(0x5000).Context(0xa).Stack(2);
    Step fill = t.Call(CallId::MemsetD8_v2).In(0, 0x5000).Stack(3);
    if (faulted) fill.Refused();
    Step release = t.Free(0x5000).Context(0xa).Stack(4);
    if (faulted) release.Fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    t.ReleasePrimary().Stack(5);
    return t;
  };
  const harness::Judgement judgement = Judge(program(false), program(true));
  ASSERT_THAT(judgement.findings, ::testing::SizeIs(1));
  EXPECT_EQ(judgement.findings[0].rule, harness::Rule::Orphaned);
  EXPECT_EQ(judgement.findings[0].where.stack, 5U);
  EXPECT_EQ(judgement.findings[0].other.stack, 4U);
  ASSERT_THAT(judgement.findings[0].detail, ::testing::SizeIs(1));
  EXPECT_EQ(judgement.findings[0].detail[0].detail, harness::Detail::Answered);
}

// Only of a child is it unknown how it ended. What no process is known for was cut off.
TEST(JudgeDetails, HowAnObjectStayedTellsAChildFromTheFirstProcess) {
  harness::Facts facts;
  facts.processes.resize(2);
  facts.processes[0].pid = 100;
  facts.processes[1].pid = 200;
  harness::Object object = {.pid = 100};
  EXPECT_TRUE(harness::HowItStayed(object, facts).empty());
  object.pid = 200;
  EXPECT_EQ(harness::HowItStayed(object, facts), harness::Details{{harness::Detail::ChildStillRan}});
  EXPECT_TRUE(harness::WasCutOff(object, facts));
  facts.processes[1].exit = 7;
  EXPECT_TRUE(harness::HowItStayed(object, facts).empty());
  EXPECT_FALSE(harness::WasCutOff(object, facts));
  object.pid = 300;
  EXPECT_TRUE(harness::WasCutOff(object, facts));
}

TEST(JudgeDetails, WhatADeclinedReleaseAnswered) {
  Trace t;
  t.Call(CallId::MemAddressFree).In(0, 0x10000).Fails(CUDA_ERROR_INVALID_VALUE);
  const JournalImage image(t);
  const harness::Evidence run = image.Evidence();
  harness::Site release = {.begin = run.record(run.facts().calls.at(0)).begin};
  const harness::Details how = HowItAnswered(run, release);
  ASSERT_EQ(how.size(), 1U);
  EXPECT_EQ(how[0].detail, harness::Detail::Answered);
  release.begin = 999;
  EXPECT_TRUE(HowItAnswered(run, release).empty()) << "no call began there";
}

// Calls of a function that kInner calls, of that one, which kOuter calls, and of two others that share nobody with these.
const std::uint64_t kInner = JournalImage::Frame(0, 0x1000);
const std::uint64_t kOuter = JournalImage::Frame(0, 0x2000);
class AwayFrames : public ::testing::Test {
 protected:
  AwayFrames() : image_(Calls()) {
    const auto at = [](std::uint64_t offset) { return JournalImage::Frame(0, offset); };
    image_.Module("/opt/prog").Stack(1, {at(1), kInner, kOuter}).Stack(2, {at(2), kOuter}).Stack(3, {at(3), at(4)});
    image_.Stack(4, {at(5), at(6)}).Stack(5, {kInner, at(7), kInner, kOuter});
  }
  static Trace Calls() {
    Trace t;
    for (const std::uint32_t stack : {1U, 1U, 2U, 1U, 3U, 4U, 5U, 0U}) t.Call(CallId::CtxSynchronize).Stack(stack);
    return t;
  }
  std::size_t At(std::size_t call, std::vector<harness::Away> all, bool only_from_none = false) const {
    return InnermostAway(image_.Evidence(), call, &all, only_from_none);
  }
  // The changes of the function that kInner calls, and of the one around it.
  static constexpr harness::Away kOfInner{0, 2};
  static constexpr harness::Away kOfOuter{1, 3, true};
  JournalImage image_;
};

TEST_F(AwayFrames, TheInnermostOfThoseThatAreAway) {
  EXPECT_EQ(At(3, {kOfInner}), 1U);
  EXPECT_EQ(At(3, {kOfOuter}), 2U);
  EXPECT_EQ(At(3, {kOfInner, kOfOuter}), 1U);
  EXPECT_EQ(At(3, {kOfOuter, kOfInner}), 1U);
  EXPECT_EQ(At(3, {}), 3U) << "nobody is away: no function of the stack";
  EXPECT_EQ(At(6, {kOfInner}), 2U) << "the call itself is no function";
}

TEST_F(AwayFrames, WhatNobodyKnowsIsFarOutside) {
  EXPECT_EQ(At(4, {kOfInner}), 0U) << "another function makes the call";
  EXPECT_EQ(At(7, {kOfInner}), 0U) << "the call has no stack";
  EXPECT_EQ(At(3, {kOfInner, {4, 6}}), 0U) << "no function made both calls";
  EXPECT_EQ(At(3, {kOfInner, {}}), 0U) << "nobody knows of which function";
  EXPECT_EQ(At(3, {kOfOuter}, true), 2U);
  EXPECT_EQ(At(3, {kOfInner}, true), 0U) << "it had a context before";
}

// main calls at 3 to 5 and calls a helper, which calls at 1 and 2.
JournalImage WithHelper(const Trace& trace) {
  JournalImage image(trace);
  image.Module("/opt/prog");
  for (const std::uint32_t helpers : {1U, 2U}) image.Stack(helpers, {image.Frame(0, helpers), image.Frame(0, 8), image.Frame(0, 9)});
  for (const std::uint32_t callers : {3U, 4U, 5U}) image.Stack(callers, {image.Frame(0, callers), image.Frame(0, 9)});
  return image;
}

// In one turn the helper goes back to its caller's context. In another turn its caller has left its own context, and goes back for both.
TEST(PutBack, AHelperThatStaysWhereItsCallerIsAwayOwesNoWayBack) {
  constexpr std::uint64_t kCallers = 0xe;
  const auto run = [](const std::vector<std::pair<std::uint64_t, std::uint32_t>>& sets) {
    Trace t;
    std::uint64_t current = kCallers;
    for (const auto& [context, stack] : sets) {
      t.Call(CallId::CtxSetCurrent).In(0, context).Context(std::exchange(current, context)).Stack(stack);
    }
    t.Alloc(0x1000).Context(current).Stack(5);
    return WithHelper(t);
  };
  const JournalImage trial = run({{0xa, 1}});
  const JournalImage goes_back = run({{0xa, 1}, {kCallers, 2}});
  const harness::Evidence once = goes_back.Evidence();
  EXPECT_EQ(harness::PutBack(once).Missing(trial.Evidence()).size(), 1U);
  const JournalImage stays = run({{0xa, 1}, {kCallers, 2}, {0xb, 3}, {0xa, 1}, {kCallers, 4}});
  const harness::Evidence twice = stays.Evidence();
  EXPECT_TRUE(harness::PutBack(twice).Missing(trial.Evidence()).empty());
}

TEST(PutBack, CapturesThatAHelperLeavesAreOneFindingForEachCallThatMeetsThem) {
  const auto run = [](bool ends) {
    Trace t;
    constexpr std::uint64_t kStreams[] = {0x10, 0x11, 0x12, 0x13};
    for (const std::uint64_t stream : kStreams) {
      t.Call(CallId::StreamBeginCapture_v2).In(0, stream).In(1, 2).Stack(1);
      if (ends) t.Call(CallId::StreamEndCapture).In(0, stream).Out(1, 0x90).Stack(2);
    }
    for (const std::uint64_t stream : kStreams) t.Call(CallId::StreamSynchronize).In(0, stream).Stack(stream == 0x13 ? 4 : 5);
    return WithHelper(t);
  };
  const JournalImage good = run(true);
  const harness::Evidence rehearsal = good.Evidence();
  const JournalImage trial = run(false);
  std::vector<std::uint64_t> counts;
  for (const harness::TrialFinding& one : harness::PutBack(rehearsal).Missing(trial.Evidence())) counts.push_back(one.count);
  EXPECT_THAT(counts, ::testing::ElementsAre(3U, 1U));
}

// The context was put back by a way without a record, and an answer says so.
TEST(PutBack, AnAnswerShowsThatTheContextIsBack) {
  const auto run = [](bool sets, bool asks) {
    Trace t;
    t.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0xe).Stack(1);
    if (sets) t.Call(CallId::CtxSetCurrent).In(0, 0xe).Context(0xa).Stack(2);
    if (asks) t.Call(CallId::CtxGetCurrent).Out(0, 0xe).Stack(4);
    t.Call(CallId::CtxSynchronize).Stack(5);
    return WithHelper(t);
  };
  const JournalImage good = run(true, false);
  const harness::Evidence rehearsal = good.Evidence();
  const harness::PutBack put_back(rehearsal);
  for (const bool asks : {false, true}) {
    const JournalImage trial = run(false, asks);
    EXPECT_EQ(put_back.Missing(trial.Evidence()).size(), asks ? 0U : 1U);
  }
}

TEST(CallerDistance, CountsTheFramesUpToTheFirstThatBothHave) {
  JournalImage image = WithHelper(Trace());
  image.Stack(6, {image.Frame(0, 6), image.Frame(0, 7)});
  EXPECT_EQ(harness::CallerDistance(image.view(), 1, 2), 1U);
  EXPECT_EQ(harness::CallerDistance(image.view(), 1, 3), 2U);
  EXPECT_EQ(harness::CallerDistance(image.view(), 1, 6), 3U) << "none";
}

// A handle that comes back in the second tear-down ends its owner, which that tear-down did not release.
TEST(GivenBackByRetry, NamesOnlyWhatWasReleased) {
  for (const bool released : {true, false}) {
    Trace t;
    t.CreateStream(0x10).Cycle(1);
    harness::CycleSteps steps;
    harness::StepTrace& second = steps.at(harness::StepName::SecondTeardown);
    second.ran = true;
    second.begin = released ? t.DestroyStream(0x10).Cycle(1).begin() : t.CreateStream(0x10).Cycle(2).begin();
    const JournalImage image(t);
    harness::Evidence trial = image.Evidence();
    trial.steps = &steps;
    EXPECT_EQ(harness::GivenBackByRetry(trial).size(), released ? 1U : 0U);
  }
}

TEST(Evidence, AHitIsTheCallThatMetTheFault) {
  Trace t;
  t.CreateStream(0x10);
  const std::uint64_t refused = t.CreateStream(0).Refused().begin();
  const JournalImage image(t);
  const harness::Evidence run = image.Evidence();
  ASSERT_NE(run.hit(0), nullptr);
  EXPECT_EQ(run.hit(0)->begin, refused);
  EXPECT_EQ(run.hit(1), nullptr);
}

}  // namespace
}  // namespace cuaudit::testing::judge_parts_test
