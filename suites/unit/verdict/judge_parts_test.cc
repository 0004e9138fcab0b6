// SPDX-License-Identifier: MIT
// What the judge asks before it compares a trial with the rehearsal, and what it knows of an object that is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/verdict/context/function_frames.h"
#include "harness/verdict/deficit.h"
#include "harness/verdict/how_left.h"
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

// Only of a child is it unknown how it ended. What no process is known for was cut off.
TEST(JudgeDetails, HowAnObjectStayedTellsAChildFromTheFirstProcess) {
  harness::Facts facts;
  facts.processes.resize(2);
  facts.processes[0].pid = 100;
  facts.processes[1].pid = 200;
  harness::Object object;
  object.pid = 100;
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

// A context that its creator could not destroy would have taken along what was made in it meanwhile.
TEST(UndestroyedContexts, EndWhatWasMadeInThem) {
  harness::Ledger ledger;
  harness::Object context;
  context.kind = driver::Kind::Context;
  context.state = harness::State::ReleaseRefused;
  context.pid = 100;
  context.handle = 0xa;
  context.acquired.begin = 10;
  context.released.begin = 50;
  ledger.objects.push_back(context);
  const harness::UndestroyedContexts contexts(ledger);
  harness::Object inside;
  inside.kind = driver::Kind::Stream;
  inside.pid = 100;
  inside.context = 0xa;
  inside.acquired.begin = 20;
  ASSERT_NE(contexts.EndOf(inside), nullptr);
  EXPECT_EQ(contexts.EndOf(inside)->begin, 50U);
  harness::Object other = inside;
  other.state = harness::State::Orphaned;
  EXPECT_EQ(contexts.EndOf(other), nullptr) << "it has ended";
  for (const std::uint64_t begin : {5U, 60U}) {
    other = inside;
    other.acquired.begin = begin;
    EXPECT_EQ(contexts.EndOf(other), nullptr) << "made at " << begin;
  }
  other = inside;
  other.pid = 200;
  EXPECT_EQ(contexts.EndOf(other), nullptr) << "of another process";
  other = inside;
  other.context = 0xb;
  other.parent = 0xa;
  EXPECT_EQ(contexts.EndOf(other), nullptr) << "a number that is no context";
  other.kind = driver::Kind::PeerAccess;
  EXPECT_NE(contexts.EndOf(other), nullptr) << "the peer is one of its two contexts";
}

TEST(JudgeDetails, WhatADeclinedReleaseAnswered) {
  Trace t;
  t.Call(CallId::MemAddressFree).In(0, 0x10000).Fails(CUDA_ERROR_INVALID_VALUE);
  const JournalImage image(t);
  const harness::Evidence run = image.Evidence();
  harness::Site release;
  release.begin = run.record(run.facts().calls.at(0)).begin;
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

}  // namespace
}  // namespace cuaudit::testing::judge_parts_test
