// SPDX-License-Identifier: MIT
// Rules that only a verdict raises: how the process ended, and the notes.
#include <csignal>

#include "suites/support/cases/case.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::verdict_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::ProcessEvent;
using harness::Judgement;
using harness::Rule;
using harness::Verdict;
using ::testing::IsEmpty;

// A stream and an event, both released.
Trace Clean() {
  Trace t;
  t.CreateStream(0x10).Stack(1);
  t.Call(CallId::EventCreate).Out(0, 0x11).Stack(2);
  t.Call(CallId::EventDestroy_v2).In(0, 0x11).Stack(3);
  t.DestroyStream(0x10).Stack(4);
  t.Event(ProcessEvent::Exit);
  return t;
}

// The event is refused; the process ends without another call.
Trace Cut() {
  Trace t;
  t.CreateStream(0x10).Stack(1);
  t.Call(CallId::EventCreate).Refused().Stack(2);
  return t;
}

Judgement Died(int signal, bool timed_out) {
  const JournalImage rehearsal(Clean());
  const JournalImage trial(Cut());
  return Judge(rehearsal.Evidence(), trial.Evidence(0, signal, timed_out), true, {});
}

void ExpectDeath(const Judgement& judgement, Verdict verdict, Rule rule) {
  EXPECT_EQ(judgement.verdict, verdict);
  ASSERT_EQ(judgement.findings.size(), 1U);  // the stream is masked
  EXPECT_EQ(judgement.findings[0].rule, rule);
  EXPECT_EQ(judgement.findings[0].where.call, static_cast<std::uint16_t>(CallId::EventCreate));
}

CUAUDIT_CASE(Crash, NamesTheLastCallAndMasksLeaks) { ExpectDeath(Died(SIGSEGV, false), Verdict::Crash, Rule::Crash); }
CUAUDIT_CASE(Abort, NamesTheLastCallAndMasksLeaks) { ExpectDeath(Died(SIGABRT, false), Verdict::Abort, Rule::Abort); }
CUAUDIT_CASE(Hang, NamesTheLastCallAndMasksLeaks) { ExpectDeath(Died(SIGKILL, true), Verdict::Hang, Rule::Hang); }

// Nobody holds the user object that it waits for: the graph was not made, holds another thing, or is gone.
CUAUDIT_CASE(Hang, NoUnknownGraphHoldsAUserObject) {
  enum class Graph { NotMade, OfAnotherThing, Gone, GoneWithItsExecutable };
  for (const Graph graph : {Graph::NotMade, Graph::OfAnotherThing, Graph::Gone, Graph::GoneWithItsExecutable}) {
    Trace t;
    t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
    if (graph != Graph::OfAnotherThing) t.Call(CallId::GraphRetainUserObject).In(0, 0x6).In(1, 0x9).In(2, 1);
    if (graph >= Graph::Gone) t.Last().After();
    if (graph != Graph::Gone) t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x7).In(1, 0x6);
    if (graph == Graph::NotMade) t.Last().Refused();
    if (graph == Graph::OfAnotherThing) t.Last().After();
    if (graph >= Graph::Gone) t.Call(CallId::GraphDestroy).In(0, 0x6);
    if (graph == Graph::GoneWithItsExecutable) t.Call(CallId::GraphExecDestroy).In(0, 0x7);
    t.Stop(0, SI_QUEUE);
    const JournalImage rehearsal(Clean());
    const JournalImage trial(t);
    const Judgement judgement = Judge(rehearsal.Evidence(), trial.Evidence(0, SIGKILL, true), true, {});
    ASSERT_FALSE(judgement.findings.empty());
    EXPECT_EQ(judgement.findings[0].rule, Rule::Hang) << static_cast<int>(graph);
  }
}

CUAUDIT_CASE(Crash, KeepsTheMisuseThatExplainsIt) {
  Also(Rule::UnknownHandle, Kind::Event);
  Trace t = Cut();
  t.Call(CallId::EventDestroy_v2).In(0, 0xdead).Unfinished();
  const JournalImage rehearsal(Clean());
  const JournalImage trial(t);
  const Judgement judgement = Judge(rehearsal.Evidence(), trial.Evidence(0, SIGSEGV), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::Crash);
  ASSERT_EQ(judgement.findings.size(), 2U);
  EXPECT_EQ(judgement.findings[1].rule, Rule::UnknownHandle);
}

CUAUDIT_CASE(ReleaseRefused, BlamesThePlanNotTheProgram) {
  Trace t;
  t.CreateStream(0x10).Stack(1);
  t.Call(CallId::EventCreate).Out(0, 0x11).Stack(2);
  t.Call(CallId::EventDestroy_v2).In(0, 0x11).Stack(3).Refused(CUDA_ERROR_INVALID_HANDLE);
  t.DestroyStream(0x10).Stack(4);
  const Judgement judgement = Judge(Clean(), t);
  EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::ReleaseRefused);
  EXPECT_EQ(judgement.notes[0].kind, Kind::Event);
}

CUAUDIT_CASE(ReleaseRefused, WhatWasNotEvenTriedIsALeak) {
  Also(Rule::Leak, Kind::Stream);
  Trace t;
  t.CreateStream(0x10).Stack(1);
  t.Call(CallId::EventCreate).Out(0, 0x11).Stack(2);
  t.Call(CallId::EventDestroy_v2).In(0, 0x11).Stack(3).Refused(CUDA_ERROR_INVALID_HANDLE);
  t.Call(CallId::EventDestroy_v2).In(0, 0x11).Stack(3).Refused(CUDA_ERROR_INVALID_HANDLE);
  const Judgement judgement = Judge(Clean(), t);
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].kind, Kind::Stream);
  EXPECT_EQ(judgement.notes.size(), 1U);
}

CUAUDIT_CASE(AbandonedAtExit, LeftWithoutUnwinding) {
  Also(Rule::Leak, Kind::Stream);
  Trace t = Cut();
  t.Call(CallId::GetErrorString).In(0, 2);
  t.Event(ProcessEvent::Exit);
  const JournalImage rehearsal(Clean());
  const JournalImage trial(t);
  const Judgement judgement = Judge(rehearsal.Evidence(), trial.Evidence(1), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::AbandonedAtExit);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::AbandonedAtExit);

  harness::JudgeOptions strict = {.abandoned_is_leak = true};
  EXPECT_EQ(Judge(rehearsal.Evidence(), trial.Evidence(1), true, strict).verdict, Verdict::Leak);
}

// Marks that the program is in `phase`, and then makes the calls of a trial that is cut off.
Trace CutIn(faults::Phase phase) {
  Trace t;
  t.CreateStream(0x10).Stack(1).In(phase);
  t.Call(CallId::EventCreate).Refused().Stack(2).In(phase);
  t.Event(ProcessEvent::Exit);
  return t;
}

CUAUDIT_CASE(AbandonedInInit, LeftWhenInitFailed) {
  const Judgement judgement = Judge(Clean(), CutIn(faults::Phase::Init));
  EXPECT_EQ(judgement.verdict, Verdict::AbandonedAtExit);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::AbandonedInInit);
  EXPECT_EQ(judgement.notes[0].kind, Kind::Stream);
}

CUAUDIT_CASE(Leak, WhoExitsOutOfALaterPhaseSkippedTheTearDown) {
  for (const faults::Phase phase : {faults::Phase::Work, faults::Phase::Teardown, faults::Phase::Unwind}) {
    const Judgement judgement = Judge(Clean(), CutIn(phase));
    EXPECT_EQ(judgement.verdict, Verdict::Leak);
    ASSERT_EQ(judgement.findings.size(), 1U);
    EXPECT_EQ(judgement.findings[0].kind, Kind::Stream);
  }
}

CUAUDIT_CASE(Leak, WhoEndsWithSuccessAbandonedNothing) {
  Trace t = Cut();
  t.Event(ProcessEvent::Exit);
  const Judgement judgement = Judge(Clean(), t, 0);
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].kind, Kind::Stream);
}

CUAUDIT_CASE(AbandonedAtExit, ALeftContextStackIsNoMisuseThen) {
  Trace t;
  t.Push(0xa);
  t.Call(CallId::EventCreate).Refused();
  t.Event(ProcessEvent::Exit);
  const Judgement judgement = Judge(Clean(), t);
  EXPECT_EQ(judgement.verdict, Verdict::AbandonedAtExit);
  EXPECT_EQ(judgement.notes.size(), 1U);
}

// A child makes a stream and an event, and loses the stream when the event is refused; it says its end, or not.
Trace InAChild(bool refused, bool says) {
  constexpr std::uint32_t kChild = 4243;
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.CreateStream(0x10).Process(kChild).Stack(1);
  if (refused) {
    t.Call(CallId::EventCreate).Refused().Process(kChild).Stack(2);
    t.Call(CallId::MemFree_v2).In(0, 0).Process(kChild).Stack(5);  // it goes on
  } else {
    t.DestroyStream(0x10).Process(kChild).Stack(4);
  }
  if (says) t.Event(ProcessEvent::Exit, kChild);
  t.Event(ProcessEvent::Exit);
  return t;
}

CUAUDIT_CASE(Unjudged, AChildThatVanishedWithAStreamMakesNoPass) {
  const Judgement judgement = Judge(InAChild(false, false), InAChild(true, false));
  EXPECT_EQ(judgement.verdict, Verdict::NotExercised);
  EXPECT_TRUE(judgement.unjudged);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::Unjudged);
  EXPECT_EQ(judgement.notes[0].kind, Kind::Stream);
}

CUAUDIT_CASE(Leak, AChildThatSaysItsEndIsJudgedLikeAnyProcess) {
  const Judgement judgement = Judge(InAChild(false, true), InAChild(true, true));
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].kind, Kind::Stream);
}

// A child pushes a context and ends with it current.
Trace PushedInAChild(bool says) {
  constexpr std::uint32_t kChild = 4243;
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.Push(0xa).Process(kChild);
  if (says) t.Event(ProcessEvent::Exit, kChild);
  t.Event(ProcessEvent::Exit);
  return t;
}

CUAUDIT_CASE(ContextStack, AChildThatExitsLeavesItUnbalanced) {
  const JournalImage run(PushedInAChild(true));
  const Judgement judgement = Judge(run.Evidence(), run.Evidence(), false, {});
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::ContextStack);
  const JournalImage killed(PushedInAChild(false));
  EXPECT_THAT(Judge(killed.Evidence(), killed.Evidence(), false, {}).findings, IsEmpty()) << "it had no chance to pop";
}

CUAUDIT_CASE(ProcessLifetime, TheRehearsalLeavesItToo) {
  Trace rehearsal;
  rehearsal.CreateStream(0x10).Stack(1);
  rehearsal.Call(CallId::EventCreate).Out(0, 0x11).Stack(2);
  rehearsal.Call(CallId::EventDestroy_v2).In(0, 0x11).Stack(3);
  Trace trial;
  trial.CreateStream(0x77).Stack(1);
  trial.Call(CallId::EventCreate).Refused().Stack(2);
  trial.Call(CallId::EventCreate).Out(0, 0x12).Stack(5);
  trial.Call(CallId::EventDestroy_v2).In(0, 0x12).Stack(3);
  const Judgement judgement = Judge(rehearsal, trial);
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::ProcessLifetime);
}

CUAUDIT_CASE(ProcessLifetime, TwoWhereTheRehearsalLeavesOneIsALeakOfOne) {
  Also(Rule::Leak, Kind::Stream);
  Trace rehearsal;
  rehearsal.CreateStream(0x10);
  Trace trial;
  trial.CreateStream(0x10);
  trial.CreateStream(0x11);
  trial.Call(CallId::EventCreate).Refused();
  trial.Free(0);
  const Judgement judgement = Judge(rehearsal, trial);
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].count, 1U);
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].count, 1U);
}

// A trial that fails and unwinds, with `left` on the way.
template <typename Left>
Judgement LeftOnTheWay(const Left& left, const Trace& rehearsal = Clean(), std::uint32_t flags = 0) {
  Trace trial = Cut();
  left(trial);
  trial.DestroyStream(0x10).Stack(4);
  trial.Event(ProcessEvent::Exit);
  const JournalImage before(rehearsal);
  JournalImage after(trial);
  after.Flags(flags);
  return Judge(before.Evidence(), after.Evidence(1), true, {});
}

CUAUDIT_CASE(KeptByLibrary, ACacheOfTheCLibraryIsNotedAndCounted) {
  const Judgement judgement =
      LeftOnTheWay([](Trace& t) { t.Host(faults::HostCall::Allocate, 0x5000, 40).Flags(faults::kForwarded | faults::kKeptByLibrary); });
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::KeptByLibrary);
  EXPECT_EQ(judgement.notes[0].bytes, 40U);
}

CUAUDIT_CASE(KeptByLibrary, ADescriptorThatTheCLibraryOpenedForItselfIsNoted) {
  const Judgement judgement =
      LeftOnTheWay([](Trace& t) { t.Host(faults::HostCall::DescriptorFound, 0x5).Flags(faults::kForwarded | faults::kKeptByLibrary); });
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::KeptByLibrary);
}

CUAUDIT_CASE(KeptByLibrary, APoolThatTheRehearsalKeepsTooMayBeLarger) {
  Trace rehearsal;
  rehearsal.CreateStream(0x10).Stack(1);
  rehearsal.Host(faults::HostCall::Map, 0x7000'0000, 4096).Stack(9);
  rehearsal.DestroyStream(0x10).Stack(4);
  rehearsal.Event(ProcessEvent::Exit);
  const Judgement judgement = LeftOnTheWay(
      [](Trace& t) {
        t.Host(faults::HostCall::Map, 0x7000'0000, 4096).Stack(9);
        t.Host(faults::HostCall::Map, 0x7100'0000, 4096).Stack(9);
      },
      rehearsal);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 2U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::ProcessLifetime);
  EXPECT_EQ(judgement.notes[1].rule, Rule::KeptByLibrary);
}

// What probes see that nobody asked for.
CUAUDIT_CASE(HostLeft, EveryCheapKindThatNobodyAskedFor) {
  const Judgement judgement = LeftOnTheWay(
      [](Trace& t) {
        t.Host(faults::HostCall::DescriptorOpen, 0x5).Stack(6);
        t.Host(faults::HostCall::ThreadCreate, 0x6000).Stack(7);
        t.Host(faults::HostCall::Map, 0x7000'0000, 4096).Stack(8);
        t.Host(faults::HostCall::Dlopen, 0x8000).Stack(9);
        t.Host(faults::HostCall::MutexInit, 0x9000).Stack(10);
      },
      Clean(), faults::kHeapLeftOut);
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 5U);
  for (const harness::TrialFinding& note : judgement.notes) EXPECT_EQ(note.rule, Rule::HostLeft);
}

CUAUDIT_CASE(HostMisused, AMutexDestroyedWhileLockedThatNobodyAskedFor) {
  const Judgement judgement = LeftOnTheWay(
      [](Trace& t) {
        t.Host(faults::HostCall::MutexInit, 0x9000).Stack(10);
        t.Host(faults::HostCall::MutexDestroyedLocked, 0x9000).Stack(11);
        t.Host(faults::HostCall::MutexDestroy, 0x9000).Stack(12);
      },
      Clean(), faults::kHeapLeftOut);
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::HostMisused);
}

// What the fault-free run keeps to its end may be missing, and another stream in its stead: one, of its sort, made after the fault, where
// that run makes none.
CUAUDIT_CASE(Leak, WhatStandsInForNothing) {
  enum class Wrong { GivenBack, TriedAgain, Twice, BeforeTheFault, OtherSort, WhereItIsUsual, NeverTried };
  for (const Wrong wrong : {Wrong::GivenBack, Wrong::TriedAgain, Wrong::Twice, Wrong::BeforeTheFault, Wrong::OtherSort,
                            Wrong::WhereItIsUsual, Wrong::NeverTried}) {
    SCOPED_TRACE(static_cast<int>(wrong));
    Trace rehearsal;
    rehearsal.CreateStream(0x10).Stack(1);
    if (wrong == Wrong::GivenBack) rehearsal.DestroyStream(0x10);
    rehearsal.CreateStream(0x20).Stack(wrong == Wrong::WhereItIsUsual ? 2 : 3);
    rehearsal.DestroyStream(0x20);
    Trace trial;
    if (wrong == Wrong::BeforeTheFault) trial.CreateStream(0x30).Stack(2);
    (wrong == Wrong::NeverTried ? trial.Alloc(0) : trial.CreateStream(0)).Stack(1).Refused();
    if (wrong == Wrong::TriedAgain) trial.CreateStream(0x10).Stack(1);
    if (wrong == Wrong::OtherSort) {
      trial.Alloc(0x3000).Stack(2);
    } else if (wrong != Wrong::BeforeTheFault) {
      trial.CreateStream(0x30).Stack(2);
    }
    if (wrong == Wrong::Twice) trial.CreateStream(0x40).Stack(2);
    trial.CreateStream(0x20).Stack(3);
    trial.DestroyStream(0x20);
    JournalImage before(rehearsal);
    JournalImage after(trial);
    for (JournalImage* const image : {&before, &after}) {
      image->Module("/bin/program");
      for (const std::uint32_t stack : {1U, 2U, 3U}) image->Stack(stack, {JournalImage::Frame(0, stack << 8U)});
    }
    const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
    EXPECT_EQ(judgement.verdict, Verdict::Leak) << Name(judgement.verdict);
    ASSERT_EQ(judgement.findings.size(), 1U);
    EXPECT_EQ(judgement.findings[0].count, 1U);
    EXPECT_EQ(judgement.findings[0].acquired.stack, 2U);
  }
}

CUAUDIT_CASE(Leak, TheSameBlocksOfTheProgramAre) {
  const Judgement judgement = LeftOnTheWay([](Trace& t) {
    t.Host(faults::HostCall::Allocate, 0x5000, 40).Stack(5);
    t.Host(faults::HostCall::DescriptorOpen, 0x5).Stack(6);
    t.Host(faults::HostCall::ThreadCreate, 0x6000).Stack(7);
    t.Host(faults::HostCall::Map, 0x7000'0000, 4096).Stack(8);
    t.Host(faults::HostCall::DescriptorFound, 0x6);  // which nobody saw opened
  });
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  EXPECT_EQ(judgement.findings.size(), 5U);
}

}  // namespace
}  // namespace cuaudit::testing::verdict_test
