// SPDX-License-Identifier: MIT
// Rules over all kinds of resource, kind by kind, and what `cuaudit run` says of objects that are left.
#include <algorithm>
#include <string>

#include "harness/ledger/arguments.h"
#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"
#include "suites/support/cases/traces.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::leak_test {
namespace {

using driver::CallId;
using driver::Kind;
using harness::Rule;
using harness::Verdict;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string One(Kind kind) { return std::string(driver::Name(kind)) + " 1"; }

TEST(EveryLeakableKind, HasAPlantedCase) {
  for (const Kind kind : LeakableKinds()) {
    const auto& cases = KindCases();
    const bool found = std::any_of(cases.begin(), cases.end(), [kind](const KindCase& c) { return c.kind == kind; });
    EXPECT_TRUE(found) << "kind '" << driver::Name(kind) << "' has no planted leak in kind_cases.cc";
  }
}

CUAUDIT_CASE(Leak, OneObjectOfEveryKindStaysAlive) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == Kind::ContextStackEntry) continue;  // its own rule
    const CaseRow row(c.kind);
    Trace t;
    c.acquire(t);
    EXPECT_THAT(Left(t.Fold()), ElementsAre(One(c.kind)));
  }
}

CUAUDIT_CASE(Leak, TheSecondOfTwoIsTheOneNamed) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == Kind::ContextStackEntry) continue;
    const CaseRow row(c.kind);
    Trace t;
    c.acquire(t);
    c.release(t);
    c.acquire(t);
    const harness::Ledger ledger = t.Fold();
    EXPECT_THAT(Left(ledger), ElementsAre(One(c.kind)));
    EXPECT_EQ(ledger.objects.back().generation, 1U) << driver::Name(c.kind);
  }
}

// The sweep's view: the fault-free run releases the object, the faulted one returns early.
CUAUDIT_CASE(Leak, AnEarlyReturnAfterTheFaultLosesEveryKind) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == Kind::ContextStackEntry) continue;
    const CaseRow row(c.kind);
    Trace rehearsal;
    c.acquire(rehearsal);
    rehearsal.CreateStream(0x51);
    rehearsal.DestroyStream(0x51);
    c.release(rehearsal);
    Trace trial;
    c.acquire(trial);
    trial.CreateStream(0).Refused();
    trial.CreateStream(0x52);
    trial.DestroyStream(0x52);
    const harness::Judgement judgement = Judge(rehearsal, trial);
    EXPECT_EQ(judgement.verdict, Verdict::Leak) << driver::Name(c.kind);
    ASSERT_EQ(judgement.findings.size(), 1U) << driver::Name(c.kind);
    EXPECT_EQ(judgement.findings[0].rule, Rule::Leak);
    EXPECT_EQ(judgement.findings[0].kind, c.kind);
    EXPECT_EQ(judgement.findings[0].count, 1U);
  }
}

CUAUDIT_CASE(Leak, EveryExtraReferenceCounts) {
  Trace t;
  t.Call(CallId::MemCreate).Out(0, 0x5).In(1, 0x1000);
  t.Call(CallId::MemRetainAllocationHandle).Out(0, 0x5);
  t.Call(CallId::MemRelease).In(0, 0x5);
  t.Host(faults::HostCall::Dlopen, 0x7);
  t.Host(faults::HostCall::Dlopen, 0x7);
  t.Host(faults::HostCall::Dlclose, 0x7);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 3);
  t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 2);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("physical_memory 1", "user_object 1", "dlopen_reference 1"));
  EXPECT_EQ(ledger.objects.back().references, 1U);
}

// A driver opens the library that the program has open, and keeps it: not a reference to take for the program's.
CUAUDIT_CASE(Leak, ALibraryIsMissedWhereItWasOpened) {
  Trace before, after;
  for (Trace* t : {&before, &after}) {
    t->Host(faults::HostCall::Dlopen, 0x7, 0xA);
    t->Host(faults::HostCall::Dlopen, 0x7, 0xD);
  }
  before.CreateStream(0x51);
  before.DestroyStream(0x51);
  before.Host(faults::HostCall::Dlclose, 0x7, 0xA);
  EXPECT_EQ(before.Fold().objects.front().state, harness::State::Released);
  after.CreateStream(0).Refused();
  after.CreateStream(0x52);
  after.DestroyStream(0x52);
  const JournalImage clean(before), failed(after);
  const harness::Judgement judgement = Judge(clean.Evidence(), failed.Evidence(1), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Leak);
  EXPECT_EQ(judgement.findings[0].kind, Kind::DlopenReference);
}

CUAUDIT_CASE(Leak, AFailedReleaseLeavesTheObjectToTheProgram) {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1"));
}

CUAUDIT_CASE(Leak, MovedReferencesLeaveTheRestWithTheCaller) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 2);
  t.Call(CallId::GraphRetainUserObject).In(0, 0x1).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("user_object 1"));
}

CUAUDIT_CASE(Leak, TheGraphTakesItsOwnReferenceWithoutMove) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::GraphRetainUserObject).In(0, 0x1).In(1, 0x9).In(2, 1).In(3, 0);
  t.Call(CallId::GraphDestroy).In(0, 0x1);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("user_object 1"));
}

CUAUDIT_CASE(Leak, PitchedMemoryCountsItsPitch) {
  Trace t;
  t.Call(CallId::MemAllocPitch_v2).Out(0, 0x1000).Out(1, 512).In(2, 100).In(3, 4).In(4, 4);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("device_memory 1"));
  EXPECT_EQ(ledger.objects.at(0).bytes, 2048U);
}

CUAUDIT_CASE(Leak, ACaptureEndsWithItsStream) {
  Trace t;
  t.CreateStream(0x5);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
  t.DestroyStream(0x5);
  t.CreateStream(0x5);
  t.Call(CallId::MemAllocAsync).Out(0, 0x7000).In(1, 64).In(2, 0x5);
  t.DestroyStream(0x5);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, ACaptureDiesWithTheContextOfItsStream) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.CreateStream(0x5).Context(0xa);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  t.CreateStream(0x5);
  t.Call(CallId::MemAllocAsync).Out(0, 0x7000).In(1, 64).In(2, 0x5);
  t.DestroyStream(0x5);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 relied_on_context", "stream_ordered_memory 1"));
}

// Rules that hold for every kind of resource, kind by kind: orphaned, used after release, its release refused, retried.

using harness::Judgement;
using ::testing::Contains;

CUAUDIT_CASE(Orphaned, EveryKindThatDiesWithItsContext) {
  for (const KindCase& c : KindCases()) {
    if (driver::DiesWithOf(c.kind) != driver::DiesWith::Context) continue;
    const CaseRow row(c.kind);
    Trace t;
    t.Retain();
    c.acquire(t);
    t.ReleasePrimary();
    EXPECT_THAT(Left(t.Fold()), ElementsAre(std::string(driver::Name(c.kind)) + " 1 orphaned"));
  }
}

CUAUDIT_CASE(UseAfterRelease, EveryKindThatACallUses) {
  for (const Use& use : Uses()) {
    const CaseRow row(use.one->kind);
    Trace t;
    use.one->acquire(t);
    use.one->release(t);
    use.Make(t);
    EXPECT_THAT(Wrong(t.Fold()), Contains("use_after_release " + std::string(driver::Name(use.one->kind)))) << driver::Name(use.call);
  }
}

Judgement JudgeRelease(const KindCase& c, bool retried) {
  Trace rehearsal;
  c.acquire(rehearsal);
  c.release(rehearsal);
  Trace trial;
  c.acquire(trial);
  c.release(trial);
  trial.Last().Refused(CUDA_ERROR_INVALID_CONTEXT);
  if (retried) c.release(trial);
  trial.CreateStream(0x51);  // it went on
  trial.DestroyStream(0x51);
  return Judge(rehearsal, trial);
}

// One of two pages cannot be uncovered. What is under it stays in use, and only that.
enum class Forgets { OtherGround, OtherKind, Retried, Before, CoveredAgain };

Judgement JudgeForgotten(Ground ground, Forgets forgets) {
  Trace rehearsal = CoversTwoPages(ground);
  TakeGround(rehearsal, ground, 0x50000);
  GiveGround(rehearsal, ground, 0x50000);
  Trace trial;
  const std::uint64_t covered = forgets == Forgets::OtherGround ? 0x50000 : 0x10000;
  if (forgets == Forgets::Before) {
    Cover(trial, ground, covered);
    Uncover(trial, ground, covered).Refused(CUDA_ERROR_INVALID_VALUE);
  }
  TakeGround(trial, ground, 0x10000);
  if (forgets == Forgets::OtherGround) TakeGround(trial, ground, covered);
  if (forgets == Forgets::OtherKind) {
    Cover(trial, ground == Ground::Range ? Ground::Heap : Ground::Range, covered);
    Uncover(trial, ground == Ground::Range ? Ground::Heap : Ground::Range, covered).Refused(CUDA_ERROR_INVALID_VALUE);
  } else if (forgets != Forgets::Before) {
    const bool again = forgets == Forgets::CoveredAgain;
    Cover(trial, ground, covered);
    Step uncover = Uncover(trial, ground, covered);
    again ? uncover.After(CUDA_ERROR_INVALID_VALUE) : uncover.Refused(CUDA_ERROR_INVALID_VALUE);
    if (again) Cover(trial, ground, covered);
    if (again || forgets == Forgets::Retried) Uncover(trial, ground, covered);
  }
  trial.CreateStream(0x51);  // it went on
  trial.DestroyStream(0x51);
  return Judge(rehearsal, trial);
}

CUAUDIT_CASE(Leak, GroundThatNothingHolds) {
  for (const Ground ground : kGrounds) {
    for (const Forgets forgets : {Forgets::OtherGround, Forgets::OtherKind, Forgets::Retried, Forgets::Before, Forgets::CoveredAgain}) {
      SCOPED_TRACE(static_cast<int>(ground) * 10 + static_cast<int>(forgets));
      const Judgement judgement = JudgeForgotten(ground, forgets);
      EXPECT_EQ(judgement.verdict, Verdict::Leak);
      ASSERT_EQ(judgement.findings.size(), 1U);
      EXPECT_EQ(judgement.findings[0].acquired.stack, 1U);
      EXPECT_EQ(judgement.findings[0].count, 1U);
    }
  }
}

CUAUDIT_CASE(ReleaseRefused, EveryKindThatTheDriverReleases) {
  for (const KindCase& c : KindCases()) {
    if (IsHostKind(c.kind)) continue;
    const CaseRow row(c.kind);
    const Judgement judgement = JudgeRelease(c, false);
    EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_EQ(judgement.notes.size(), 1U);
    EXPECT_EQ(judgement.notes[0].kind, c.kind);
  }
}

CUAUDIT_CASE(RetainedForRetry, EveryKindThatTheDriverReleases) {
  for (const KindCase& c : KindCases()) {
    if (IsHostKind(c.kind)) continue;
    const CaseRow row(c.kind);
    const Judgement judgement = JudgeRelease(c, true);
    EXPECT_EQ(judgement.verdict, Verdict::RetainedForRetry) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_EQ(judgement.notes.size(), 1U);
    EXPECT_EQ(judgement.notes[0].kind, c.kind);
  }
}

CUAUDIT_CASE(ProcessLifetime, EveryKindThatTheRehearsalLeavesToo) {
  for (const KindCase& c : KindCases()) {
    if (!IsLeakKind(c.kind)) continue;
    const CaseRow row(c.kind);
    Trace rehearsal;
    c.acquire(rehearsal);
    rehearsal.CreateStream(0x51).Stack(7);
    rehearsal.DestroyStream(0x51);
    Trace trial;
    c.acquire(trial);
    trial.CreateStream(0).Stack(7).Refused();
    trial.CreateStream(0x52).Stack(8);
    trial.DestroyStream(0x52);
    const Judgement judgement = Judge(rehearsal, trial);
    EXPECT_EQ(judgement.verdict, Verdict::Pass) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_EQ(judgement.notes.size(), 1U);
    EXPECT_EQ(judgement.notes[0].rule, Rule::ProcessLifetime);
    EXPECT_EQ(judgement.notes[0].kind, c.kind);
  }
}

CUAUDIT_CASE(AbandonedAtExit, EveryKindHeldWhenItLeft) {
  for (const KindCase& c : KindCases()) {
    const CaseRow row(c.kind);
    Trace rehearsal;
    c.acquire(rehearsal);
    rehearsal.CreateStream(0x51);
    rehearsal.DestroyStream(0x51);
    c.release(rehearsal);
    rehearsal.Event(faults::ProcessEvent::Exit);
    Trace trial;
    c.acquire(trial);
    trial.CreateStream(0).Refused();
    trial.Event(faults::ProcessEvent::Exit);
    const Judgement judgement = Judge(rehearsal, trial);
    EXPECT_EQ(judgement.verdict, Verdict::AbandonedAtExit) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_EQ(judgement.notes.size(), 1U);
    EXPECT_EQ(judgement.notes[0].kind, c.kind);
  }
}

// What `cuaudit run` says of driver objects that a program leaves.

using faults::ProcessEvent;

// A run without faults, judged as `cuaudit run` judges it.
Judgement JudgeRun(const Trace& run) {
  harness::JudgeOptions options = {.nothing_may_stay = true};
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
  const Judgement judgement = Judge(t, options);
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
  EXPECT_EQ(Words(judgement.findings[0].detail), "gone with its context");
  EXPECT_EQ(judgement.findings[0].where.call, static_cast<std::uint16_t>(CallId::DevicePrimaryCtxRelease_v2));
  EXPECT_EQ(judgement.findings[1].kind, Kind::MemoryPool);
  EXPECT_EQ(Words(judgement.findings[1].detail), "");
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
  EXPECT_EQ(Words(judgement.findings[0].detail), "gone with its context; acquired by a thread that still ran when the program exited");
  EXPECT_EQ(Words(judgement.findings[1].detail), "gone with its context");
}

}  // namespace
}  // namespace cuaudit::testing::leak_test
