// SPDX-License-Identifier: MIT
// What `cuaudit run` says of driver objects that a program leaves.
#include "suites/support/cases/case.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::left_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::ProcessEvent;
using harness::Judgement;
using harness::Rule;

// A run without faults, judged as `cuaudit run` judges it.
Judgement JudgeRun(const Trace& run) {
  harness::JudgeOptions options;
  options.nothing_may_stay = true;
  const JournalImage image(run);
  return Judge({}, image.Evidence(), false, options);
}

CUAUDIT_CASE(LeftAtExit, GoneWithAContextOfItsOwnWhenSomebodyAsks) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(1);
  t.CreateStream(0x10).Context(0xa).Stack(2);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa).Stack(3);
  harness::JudgeOptions options;
  options.nothing_may_stay = options.own_orphans_count = true;
  const JournalImage image(t);
  const Judgement judgement = Judge({}, image.Evidence(), false, options);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::LeftAtExit);
}

CUAUDIT_CASE(LeftAtExit, WhatTheContextTookAlongAndWhatIsAlive) {
  Trace t;
  t.Retain().Stack(1);
  t.CreateStream(0x10).Stack(2);
  t.ReleasePrimary().Stack(3);
  t.Call(CallId::MemPoolCreate).Out(0, 0x20).Stack(4);
  t.Event(ProcessEvent::Exit);
  const Judgement judgement = JudgeRun(t);
  ASSERT_EQ(judgement.findings.size(), 2U);
  EXPECT_EQ(judgement.findings[0].kind, Kind::Stream);
  EXPECT_EQ(judgement.findings[0].detail, "gone with its context");
  EXPECT_EQ(judgement.findings[0].where.call, static_cast<std::uint16_t>(CallId::DevicePrimaryCtxRelease_v2));
  EXPECT_EQ(judgement.findings[1].kind, Kind::MemoryPool);
  EXPECT_EQ(judgement.findings[1].detail, "");
}

CUAUDIT_CASE(LeftAtExit, ByAThreadThatStillRan) {
  constexpr std::uint32_t kDaemon = kThread + 1;
  Trace t;
  t.Retain().Stack(1);
  t.CreateStream(0x10).Stack(2).Thread(kDaemon);
  t.CreateStream(0x11).Stack(2).Thread(kDaemon + 1);
  t.ReleasePrimary().Stack(3);
  t.Event(ProcessEvent::Running, kProcess, kDaemon);
  t.Event(ProcessEvent::Exit);
  const Judgement judgement = JudgeRun(t);
  ASSERT_EQ(judgement.findings.size(), 2U);
  EXPECT_EQ(judgement.findings[0].detail, "gone with its context; acquired by a thread that still ran when the program exited");
  EXPECT_EQ(judgement.findings[1].detail, "gone with its context");
}

}  // namespace
}  // namespace cuaudit::testing::left_test
