// SPDX-License-Identifier: MIT
// Trials that a verdict must not blame.
#include <algorithm>
#include <csignal>

#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::verdict_test {
namespace {

using driver::CallId;
using faults::ProcessEvent;
using harness::Judgement;
using harness::Verdict;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Retain, stream, release; the stream's creation is refused and, if `retry`, repeated.
Trace Lifecycle(bool refused, bool retry) {
  Trace t;
  t.Retain().Stack(1);
  if (refused) t.CreateStream(0).Stack(2).Refused();
  if (!refused || retry) {
    t.CreateStream(0x10).Stack(2);
    t.DestroyStream(0x10).Stack(3);
  }
  t.ReleasePrimary().Stack(4);
  t.Event(ProcessEvent::Exit);
  return t;
}

Judgement JudgeTrial(const Trace& trial, int exit_status) {
  const JournalImage before(Lifecycle(false, false));
  const JournalImage after(trial);
  return Judge(before.Evidence(), after.Evidence(exit_status), true, {});
}

void ExpectQuiet(const Judgement& judgement, Verdict verdict) {
  EXPECT_EQ(judgement.verdict, verdict);
  EXPECT_THAT(judgement.findings, IsEmpty());
  EXPECT_THAT(judgement.notes, IsEmpty());
}

CUAUDIT_CASE(Crash, AnErrorExitIsNoCrash) { ExpectQuiet(JudgeTrial(Lifecycle(true, false), 1), Verdict::Pass); }
CUAUDIT_CASE(Abort, ARetryThatSucceedsIsAbsorbed) { ExpectQuiet(JudgeTrial(Lifecycle(true, true), 0), Verdict::Absorbed); }

CUAUDIT_CASE(Hang, AnUnfaultedRunThatEndsIsClean) { ExpectQuiet(Judge(Lifecycle(false, false)), Verdict::Pass); }

// The destructor that it waits for cannot come: what it was told it did not get holds the user object.
CUAUDIT_CASE(Hang, AnUnknownGraphHoldsAUserObject) {
  for (const CallId holds : {CallId::GraphInstantiateWithFlags, CallId::GraphClone, CallId::StreamEndCapture, CallId::UserObjectRetain}) {
    Trace t;
    t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
    t.Call(CallId::GraphCreate).Out(0, 0x6);
    t.Call(CallId::GraphRetainUserObject).In(0, 0x6).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
    const bool again = holds == CallId::UserObjectRetain;
    if (!again) t.Call(CallId::GraphAddChildGraphNode).Out(0, 0x5).In(1, 0x8).In(4, 0x6);
    t.Call(holds).In(0, again ? 0x9 : 0x7).In(1, again ? 1 : 0x8).After();
    t.Call(CallId::GraphDestroy).In(0, 0x6);
    t.Stop(0, SI_QUEUE);
    const JournalImage before(Lifecycle(false, false));
    const JournalImage after(t);
    const Judgement judgement = Judge(before.Evidence(), after.Evidence(0, SIGKILL, true), true, {});
    EXPECT_THAT(judgement.findings, IsEmpty()) << driver::Name(holds);
    ASSERT_FALSE(judgement.notes.empty());
    EXPECT_EQ(judgement.notes[0].rule, harness::Rule::CouldNotKnow);
  }
}

CUAUDIT_CASE(Hang, AGraphHoldsAUserObjectThatItWasNotToGet) {
  for (const bool instantiated : {false, true}) {
    Trace t;
    t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
    t.Call(CallId::GraphCreate).Out(0, 0x6);
    t.Call(CallId::GraphRetainUserObject).In(0, 0x6).In(1, 0x9).In(2, 1).After();
    if (instantiated) {
      t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x7).In(1, 0x6);
      t.Call(CallId::GraphDestroy).In(0, 0x6);
    }
    t.Call(CallId::UserObjectRelease).In(0, 0x9).In(1, 1);
    t.Stop(0, SI_QUEUE);
    const JournalImage before(Lifecycle(false, false));
    const JournalImage after(t);
    const Judgement judgement = Judge(before.Evidence(), after.Evidence(0, SIGKILL, true), true, {});
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_FALSE(judgement.notes.empty());
    EXPECT_EQ(judgement.notes[0].rule, harness::Rule::CouldNotKnow);
    EXPECT_THAT(judgement.skipped, ElementsAre(harness::Reason::DestructorKept));
  }
}

CUAUDIT_CASE(AbandonedAtExit, UnwindingBeforeExitIsNotAbandoned) { ExpectQuiet(JudgeTrial(Lifecycle(true, false), 2), Verdict::Pass); }

CUAUDIT_CASE(AbandonedInInit, NothingWasHeldWhenInitFailed) {
  Trace t;
  t.Retain().Stack(1).Refused().In(faults::Phase::Init);
  t.Event(ProcessEvent::Exit);
  ExpectQuiet(JudgeTrial(t, 1), Verdict::Pass);
}

CUAUDIT_CASE(AbandonedAtExit, NothingWasHeldWhenItLeft) {
  Trace t;
  t.Retain().Stack(1).Refused();
  t.Event(ProcessEvent::Exit);
  ExpectQuiet(JudgeTrial(t, 1), Verdict::Pass);
}

CUAUDIT_CASE(Leak, WhoseLastReleaseIsRefusedMayEndWithSuccess) {
  Trace t;
  t.Retain().Stack(1);
  t.CreateStream(0x10).Stack(2);
  t.DestroyStream(0x10).Stack(3);
  t.ReleasePrimary().Stack(4).Refused(CUDA_ERROR_INVALID_CONTEXT);
  t.Event(ProcessEvent::Exit);
  const Judgement judgement = JudgeTrial(t, 0);
  EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

CUAUDIT_CASE(ReleaseRefused, ASecondTryGivesItBack) {
  Trace t;
  t.Retain().Stack(1);
  t.CreateStream(0x10).Stack(2);
  t.DestroyStream(0x10).Stack(3).Refused(CUDA_ERROR_INVALID_HANDLE);
  t.DestroyStream(0x10).Stack(3);
  t.ReleasePrimary().Stack(4);
  const Judgement judgement = JudgeTrial(t, 1);
  EXPECT_EQ(judgement.verdict, Verdict::RetainedForRetry);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

Judgement JudgeRun(const Trace& run) { return Judge(run, {.nothing_may_stay = true}); }

CUAUDIT_CASE(LeftAtExit, NothingIsLeft) { ExpectQuiet(JudgeRun(Lifecycle(false, false)), Verdict::Pass); }

CUAUDIT_CASE(LeftAtExit, AThreadThatStillRanHoldsNothing) {
  Trace t = Lifecycle(false, false);
  t.Event(ProcessEvent::Running, kProcess, kThread);
  ExpectQuiet(JudgeRun(t), Verdict::Pass);
}

CUAUDIT_CASE(LeftAtExit, TheHostIsNotTheDriver) {
  Trace t;
  t.Host(faults::HostCall::ThreadCreate, 0x70).Stack(5);
  t.Event(ProcessEvent::Exit);
  const Judgement judgement = JudgeRun(t);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

CUAUDIT_CASE(ProcessLifetime, NothingLeftNothingNoted) { ExpectQuiet(JudgeTrial(Lifecycle(true, false), 1), Verdict::Pass); }

// A context that the program makes and destroys takes what lives in it along, and nothing is lost.
Trace WithOwnContext(bool faulted) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(1);
  t.CreateStream(0x10).Context(0xa).Stack(2);
  Step event = t.Call(CallId::EventCreate).Context(0xa).Stack(3);
  if (faulted) event.Refused();
  if (!faulted) event.Out(0, 0x11);
  if (!faulted) t.Call(CallId::EventDestroy_v2).In(0, 0x11).Context(0xa).Stack(4);
  if (!faulted) t.DestroyStream(0x10).Context(0xa).Stack(5);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa).Stack(6);
  return t;
}

CUAUDIT_CASE(Orphaned, InAContextOfItsOwn) {
  const Judgement judgement = Judge(WithOwnContext(false), WithOwnContext(true));
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

// The program destroys its context with what is in it, and that is refused.
CUAUDIT_CASE(Leak, InAContextOfItsOwnThatCouldNotBeDestroyed) {
  Trace trial = WithOwnContext(true);
  trial.Last().Refused(CUDA_ERROR_INVALID_CONTEXT);
  const Judgement judgement = Judge(WithOwnContext(false), trial);
  EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

CUAUDIT_CASE(ReliedOnContext, NothingIsThereWhenTheContextGoes) {
  harness::JudgeOptions options = {.own_orphans_count = true};
  ExpectQuiet(Judge(WithOwnContext(false), options), Verdict::Pass);
}

CUAUDIT_CASE(LeftAtExit, GoneWithAContextOfItsOwn) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(1);
  t.CreateStream(0x10).Context(0xa).Stack(2);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa).Stack(3);
  t.Event(ProcessEvent::Exit);
  const Judgement judgement = JudgeRun(t);
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

// The pop was refused, and the context took its stack entry along. Nobody popped it a second time.
CUAUDIT_CASE(RetainedForRetry, AnEntryThatVanishedWithItsContext) {
  const auto program = [](bool faulted) {
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(1);
    t.Pop(0xa).Context(0xa).Stack(2);
    t.Push(0xa).Context(0).Stack(3);
    Step pop = t.Pop(0xa).Context(0xa).Stack(4);
    if (faulted) pop.Refused(CUDA_ERROR_INVALID_CONTEXT);
    t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(faulted ? 0xa : 0).Stack(5);
    return t;
  };
  const Judgement judgement = Judge(program(false), program(true));
  EXPECT_THAT(judgement.findings, IsEmpty());
  for (const harness::TrialFinding& note : judgement.notes) EXPECT_NE(note.rule, harness::Rule::RetainedForRetry);
}

// What takes the caller's entry off does not try the pop again, and the thread is left with one too many if its caller had one.
CUAUDIT_CASE(RetainedForRetry, AnEntryThatIsTakenOffWithoutAPop) {
  for (const bool has_caller : {true, false}) {
    const auto program = [&](bool faulted) {
      Trace t;
      t.Retain(0xa).Context(0).Stack(1);
      if (has_caller) t.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0).Stack(2);
      t.Push(0xa).Context(has_caller ? 0xa : 0).Stack(3);
      Step pop = t.Pop(0xa).Context(0xa).Stack(4);
      if (faulted) pop.Refused(CUDA_ERROR_INVALID_CONTEXT);
      t.Call(CallId::CtxSetCurrent).In(0, 0).Context(has_caller || faulted ? 0xa : 0).Stack(5);
      t.ReleasePrimary().Context(has_caller && faulted ? 0xa : 0).Stack(6);
      return t;
    };
    const Judgement judgement = Judge(program(false), program(true));
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_EQ(judgement.notes.size(), has_caller ? 1U : 0U);
    if (!has_caller) continue;
    EXPECT_EQ(judgement.notes[0].rule, harness::Rule::ReleaseRefused);
  }
}

// The refused primary release keeps alive what the rehearsal loses with the context.
CUAUDIT_CASE(Orphaned, LeftWithTheContextInBothRuns) {
  Trace rehearsal;
  rehearsal.Retain().Stack(1);
  rehearsal.CreateStream(0x10).Stack(2);
  rehearsal.ReleasePrimary().Stack(4);
  Trace trial;
  trial.Retain().Stack(1);
  trial.CreateStream(0x10).Stack(2);
  trial.ReleasePrimary().Stack(4).Refused(CUDA_ERROR_INVALID_CONTEXT);
  trial.Free(0);  // it went on: not abandoned
  const Judgement judgement = Judge(rehearsal, trial);
  EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

// A worker that is killed when it is no longer needed holds a stream, in every run.
CUAUDIT_CASE(Unjudged, AKilledWorkerHoldsWhatItHoldsWithoutFaults) {
  const auto program = [](bool refused) {
    constexpr std::uint32_t kChild = 4243;
    Trace t;
    t.Event(ProcessEvent::Start);
    t.Event(ProcessEvent::Fork, kChild, kProcess);
    t.CreateStream(0x10).Process(kChild).Stack(1);
    t.Host(faults::HostCall::Allocate, 0x5000, refused ? 64 : 32).Process(kChild).Stack(refused ? 7 : 6);
    const Step event = t.Call(CallId::EventCreate).Stack(2);
    if (refused) Step(event).Refused();
    if (!refused) Step(event).Out(0, 0x11);
    if (!refused) t.Call(CallId::EventDestroy_v2).In(0, 0x11).Stack(3);
    t.Event(ProcessEvent::Exit);
    return t;
  };
  const Judgement judgement = Judge(program(false), program(true));
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_FALSE(judgement.unjudged);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

// What the loader allocates goes with the library or the thread that it was for.
CUAUDIT_CASE(KeptByLibrary, BlocksOfALibraryOrAThreadAreNotSaidTwice) {
  Trace trial = Lifecycle(false, false);
  trial.Host(faults::HostCall::Allocate, 0x5000, 288).Flags(faults::kForwarded | faults::kPartOfOther);
  const Judgement judgement = Judge(Lifecycle(false, false), trial);
  EXPECT_THAT(judgement.findings, IsEmpty());
  EXPECT_THAT(judgement.notes, IsEmpty());
}

CUAUDIT_CASE(KeptByLibrary, ACacheThatWasGivenBackIsNotNoted) {
  Trace trial = Lifecycle(true, false);
  trial.Host(faults::HostCall::Allocate, 0x5000, 40).Flags(faults::kForwarded | faults::kKeptByLibrary);
  trial.Host(faults::HostCall::Deallocate, 0x5000);
  ExpectQuiet(JudgeTrial(trial, 1), Verdict::Pass);
}

// A trial with host resources given back rightly, seen by probes that nobody asked for.
Judgement GivenBack(faults::HostCall takes, faults::HostCall gives) {
  Trace trial = Lifecycle(true, false);
  trial.Host(takes, 0x5000, 4096);
  trial.Host(gives, 0x5000, 4096);
  const JournalImage before(Lifecycle(false, false));
  JournalImage after(trial);
  after.Flags(faults::kHeapLeftOut);
  return Judge(before.Evidence(), after.Evidence(1), true, {});
}

CUAUDIT_CASE(HostLeft, WhatIsGivenBackIsNotNoted) {
  ExpectQuiet(GivenBack(faults::HostCall::DescriptorOpen, faults::HostCall::DescriptorClose), Verdict::Pass);
  ExpectQuiet(GivenBack(faults::HostCall::Map, faults::HostCall::Unmap), Verdict::Pass);
}

CUAUDIT_CASE(HostMisused, AMutexIsDestroyedUnlocked) {
  ExpectQuiet(GivenBack(faults::HostCall::MutexInit, faults::HostCall::MutexDestroy), Verdict::Pass);
}

// Numbers are given out anew: a descriptor closed or a thread joined unseen proves nothing against the next of that name.
CUAUDIT_CASE(DoubleRelease, NamesOfDescriptorsThreadsAndMappingsComeBack) {
  Trace trial = Lifecycle(true, false);
  for (const auto& [make, give] : {std::pair{faults::HostCall::DescriptorOpen, faults::HostCall::DescriptorClose},
                                   std::pair{faults::HostCall::ThreadCreate, faults::HostCall::ThreadJoin},
                                   std::pair{faults::HostCall::Map, faults::HostCall::Unmap}}) {
    trial.Host(make, 0x5000, 4096);
    trial.Host(give, 0x5000, 4096);
    trial.Host(give, 0x5000, 4096);
  }
  ExpectQuiet(JudgeTrial(trial, 1), Verdict::Pass);
}

CUAUDIT_CASE(Leak, AMappingThatIsReplacedOrUnmappedInPartsIsNone) {
  Trace trial = Lifecycle(true, false);
  trial.Host(faults::HostCall::Map, 0x10000, 0x4000);
  trial.Host(faults::HostCall::Map, 0x10000, 0x4000);  // fixed, over the first
  trial.Host(faults::HostCall::Unmap, 0x11000, 0x1000);
  trial.Host(faults::HostCall::Unmap, 0x0f000, 0x2000);
  trial.Host(faults::HostCall::Unmap, 0x12000, 0x9000);
  ExpectQuiet(JudgeTrial(trial, 1), Verdict::Pass);
}

// What the fault-free run keeps to its end could not be made, and something else of its sort is kept in its stead.
CUAUDIT_CASE(Leak, AFallbackForWhatIsKeptToTheEnd) {
  struct Pair {
    CallId best;
    CallId fallback;
  };
  for (const Pair& one : {Pair{CallId::StreamCreateWithPriority, CallId::StreamCreate}, Pair{CallId::MemAllocManaged, CallId::MemAlloc_v2},
                          Pair{CallId::MemAllocAsync, CallId::MemAlloc_v2}, Pair{CallId::MemHostAlloc, CallId::MemAllocHost_v2},
                          Pair{CallId::Array3DCreate_v2, CallId::ArrayCreate_v2}}) {
    for (const int status : {0, 1}) {
      SCOPED_TRACE(static_cast<int>(one.best));
      Trace rehearsal;
      rehearsal.Call(one.best).Out(0, 0x10).In(1, 0x1000).Stack(1);
      rehearsal.CreateStream(0x51).Stack(3);
      rehearsal.DestroyStream(0x51);
      Trace trial;
      trial.Call(one.best).Out(0, 0).In(1, 0x1000).Stack(1).Refused();
      trial.Call(one.fallback).Out(0, 0x20).In(1, 0x1000).Stack(2);
      trial.CreateStream(0x51).Stack(3);
      trial.DestroyStream(0x51);
      JournalImage before(rehearsal);
      JournalImage after(trial);
      for (JournalImage* const image : {&before, &after}) {
        image->Module("/bin/program");
        for (const std::uint32_t stack : {1U, 2U, 3U}) image->Stack(stack, {JournalImage::Frame(0, stack << 8U)});
      }
      const Judgement judgement = Judge(before.Evidence(), after.Evidence(status), true, {});
      EXPECT_EQ(judgement.verdict, status == 0 ? Verdict::Absorbed : Verdict::Pass) << Name(judgement.verdict);
      EXPECT_THAT(judgement.findings, IsEmpty());
      ASSERT_EQ(judgement.notes.size(), 1U);
      EXPECT_EQ(judgement.notes[0].rule, harness::Rule::ProcessLifetime);
    }
  }
}

// A driver declines to free a range that is still mapped, and would go on with pages that went back to the host: what is under a mapping or
// registration that could not be ended is left alone.
CUAUDIT_CASE(Leak, GroundUnderWhatCouldNotBeReleased) {
  enum class Fails { First, Second, Both };
  for (const Ground ground : kGrounds) {
    for (const Fails fails : {Fails::First, Fails::Second, Fails::Both}) {
      for (const bool carried_out : {false, true}) {
        SCOPED_TRACE(static_cast<int>(ground) * 10 + static_cast<int>(fails));
        const JournalImage before(CoversTwoPages(ground));
        Trace t;
        TakeGround(t, ground, 0x10000);
        for (const std::uint64_t at : {0x10000U, 0x12000U}) Cover(t, ground, at);
        for (const std::uint64_t at : {0x10000U, 0x12000U}) {
          Step uncover = Uncover(t, ground, at);
          if (fails == (at == 0x10000U ? Fails::Second : Fails::First)) continue;
          carried_out ? uncover.After(CUDA_ERROR_INVALID_VALUE) : uncover.Refused(CUDA_ERROR_INVALID_VALUE);
        }
        const JournalImage after(t);
        const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
        EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused) << Name(judgement.verdict);
        EXPECT_THAT(judgement.findings, IsEmpty());
        EXPECT_TRUE(std::any_of(judgement.notes.begin(), judgement.notes.end(), [](const harness::TrialFinding& note) {
          return note.rule == harness::Rule::ReleaseRefused && note.acquired.stack == 1 && note.where.stack == 3;
        }));
      }
    }
  }
}

}  // namespace
}  // namespace cuaudit::testing::verdict_test
