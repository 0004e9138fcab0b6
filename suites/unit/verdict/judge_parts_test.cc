// SPDX-License-Identifier: MIT
// What the judge asks before it compares a trial with the rehearsal, and what it knows of an object that is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cuaudit::testing::judge_parts_test
