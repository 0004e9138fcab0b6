// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>

#include "suites/support/journal_image.h"

namespace cuaudit::testing::judge_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::ProcessEvent;
using harness::Judgement;
using harness::Rule;
using harness::Verdict;
using ::testing::IsEmpty;

Trace Rehearsal() {
  Trace t;
  t.CreateStream(0x10);
  t.DestroyStream(0x10);
  return t;
}

Judgement JudgeTrial(const Trace& trial, int exit_status = 1, int signal = 0, bool timed_out = false) {
  const JournalImage before(Rehearsal());
  const JournalImage after(trial);
  return Judge(before.Evidence(), after.Evidence(exit_status, signal, timed_out), true, {});
}

TEST(Judge, AFaultThatDidNotFireProvesNothing) {
  Trace t;
  t.CreateStream(0x10);
  const Judgement judgement = JudgeTrial(t, 0, SIGSEGV);
  EXPECT_EQ(judgement.verdict, Verdict::NotExercised);
  EXPECT_FALSE(judgement.fired);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

TEST(Judge, NamesTheFirstInjectedCall) {
  Trace t;
  t.Call(CallId::EventCreate).Refused().Stack(4).At(10, 11);
  t.Call(CallId::StreamCreate).Refused().Stack(3).At(5, 6);
  const Judgement judgement = JudgeTrial(t);
  EXPECT_TRUE(judgement.fired);
  EXPECT_EQ(judgement.fault_site.call, static_cast<std::uint16_t>(CallId::StreamCreate));
  EXPECT_EQ(judgement.fault_site.stack, 3U);
  EXPECT_NE(judgement.fault_key, 0U);
}

TEST(Judge, AHangOutranksTheSignalThatEndedIt) {
  Trace t;
  t.CreateStream(0).Refused();
  EXPECT_EQ(JudgeTrial(t, 0, SIGKILL, true).verdict, Verdict::Hang);
  EXPECT_EQ(JudgeTrial(t, 0, SIGABRT).verdict, Verdict::Abort);
  EXPECT_EQ(JudgeTrial(t, 0, SIGBUS).verdict, Verdict::Crash);
}

TEST(Judge, MisuseOutranksALeakAndBothAreListed) {
  Trace t;
  t.CreateStream(0).Refused();
  t.CreateStream(0x11);
  t.Call(CallId::EventCreate).Out(0, 0x12);
  t.Call(CallId::EventDestroy_v2).In(0, 0x12);
  t.Call(CallId::EventDestroy_v2).In(0, 0x12);
  const Judgement judgement = JudgeTrial(t);
  EXPECT_EQ(judgement.verdict, Verdict::Misuse);
  ASSERT_EQ(judgement.findings.size(), 2U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::DoubleRelease);
  EXPECT_EQ(judgement.findings[1].rule, Rule::Leak);
}

TEST(Judge, MisuseOfTheRehearsalIsNotTheFaults) {
  Trace rehearsal = Rehearsal();
  rehearsal.DestroyStream(0x10).Stack(9);
  Trace trial = Rehearsal();
  trial.DestroyStream(0x10).Stack(9);
  trial.CreateStream(0).Refused();
  const JournalImage before(rehearsal);
  const JournalImage same(trial);
  EXPECT_EQ(Judge(before.Evidence(), same.Evidence(1), true, {}).verdict, Verdict::Pass);
  trial.DestroyStream(0x10).Stack(9);
  const JournalImage more(trial);
  const Judgement judgement = Judge(before.Evidence(), more.Evidence(1), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::Misuse);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].count, 1U);
}

TEST(Judge, GroupsByKindAndPlace) {
  Trace t;
  t.CreateStream(0).Refused().Stack(1);
  for (std::uint64_t i = 0; i < 3; ++i) t.Alloc(0x1000 + i * 0x1000, 0x100).Stack(2);
  t.Alloc(0x9000, 0x100).Stack(3);
  const JournalImage before(Rehearsal());
  JournalImage after(t);
  after.Module("/prog", {1}).Stack(2, {JournalImage::Frame(0, 2)}).Stack(3, {JournalImage::Frame(0, 3)});
  const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
  ASSERT_EQ(judgement.findings.size(), 2U);
  EXPECT_EQ(judgement.findings[0].count, 3U);
  EXPECT_EQ(judgement.findings[0].bytes, 0x300U);
  EXPECT_EQ(judgement.findings[1].count, 1U);
  EXPECT_NE(judgement.findings[0].acquired_key, judgement.findings[1].acquired_key);
}

TEST(Judge, HostBlocksCountInAFaultedRun) {
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x5000, 40);
  t.CreateStream(0).Refused();
  t.Free(0);
  const Judgement judgement = JudgeTrial(t);
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].kind, Kind::HostHeap);
  EXPECT_EQ(judgement.findings[0].bytes, 40U);
}

TEST(Judge, ACycleThatWentOnWasNotAbandoned) {
  Trace t;
  t.CreateStream(0x11);
  t.CreateStream(0).Refused();
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  t.Event(ProcessEvent::Exit);
  EXPECT_EQ(JudgeTrial(t).verdict, Verdict::Leak);
}

TEST(Judge, ExitHandlersDoNotUndoAbandonment) {
  Trace t;
  t.CreateStream(0x11);
  t.CreateStream(0x12);
  t.CreateStream(0).Refused();
  t.Event(ProcessEvent::Exit);
  t.DestroyStream(0x12);
  const Judgement judgement = JudgeTrial(t);
  EXPECT_EQ(judgement.verdict, Verdict::AbandonedAtExit);
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].count, 1U);
}

TEST(Judge, AnotherProcesssWorkDoesNotUndoAbandonment) {
  Trace t;
  t.CreateStream(0x11);
  t.CreateStream(0).Refused();
  t.CreateStream(0x12).Process(200);
  t.DestroyStream(0x12).Process(200);
  t.Event(ProcessEvent::Exit);
  EXPECT_EQ(JudgeTrial(t).verdict, Verdict::AbandonedAtExit);
}

TEST(Judge, WithoutFaultsLiveAndOrphanedObjectsAreNotes) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.ReleasePrimary();
  t.Call(CallId::MemPoolCreate).Out(0, 0x20);
  const Judgement judgement = Judge(t);
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 2U);
  for (const harness::TrialFinding& note : judgement.notes) EXPECT_EQ(note.rule, Rule::ProcessLifetime);
  // Only what died with its context says where.
  EXPECT_EQ(judgement.notes[0].kind, Kind::Stream);
  EXPECT_EQ(judgement.notes[0].where.call, static_cast<std::uint16_t>(CallId::DevicePrimaryCtxRelease_v2));
  EXPECT_EQ(judgement.notes[1].where.record_kind, faults::RecordKind::Empty);
}

TEST(Judge, WithoutFaultsMisuseAndDeathAreFindings) {
  Trace t = Rehearsal();
  t.DestroyStream(0x10);
  const JournalImage run(t);
  EXPECT_EQ(Judge({}, run.Evidence(), false, {}).verdict, Verdict::Misuse);
  const Judgement crashed = Judge({}, run.Evidence(0, SIGSEGV), false, {});
  EXPECT_EQ(crashed.verdict, Verdict::Crash);
  EXPECT_EQ(crashed.findings.size(), 2U);
}

TEST(Judge, AnEmptyJournalOfAProcessThatDiedHasNoPlace) {
  const JournalImage run{Trace{}};
  const Judgement judgement = Judge({}, run.Evidence(0, SIGSEGV), false, {});
  EXPECT_EQ(judgement.verdict, Verdict::Crash);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].where.record_kind, faults::RecordKind::Empty);
}

// A block and a stream are held when the event is refused; `after` is what the program does then.
template <typename Then>
Judgement LeaveAfter(Then then, bool exits = true) {
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x5000, 40);
  t.CreateStream(0x11);
  t.Call(CallId::EventCreate).Refused();
  then(t);
  if (exits) t.Event(ProcessEvent::Exit);
  return JudgeTrial(t);
}

TEST(Judge, FreeingWhatWasHeldIsUnwinding) {
  const auto frees = [](Trace& t) { t.Host(faults::HostCall::Deallocate, 0x5000); };
  const Judgement judgement = LeaveAfter(frees);
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].kind, Kind::Stream);
}

TEST(Judge, AnErrorMessageIsNoUnwinding) {
  const auto says = [](Trace& t) {
    t.Host(faults::HostCall::Allocate, 0x6000, 80);
    t.Host(faults::HostCall::Deallocate, 0x6000);
  };
  EXPECT_EQ(LeaveAfter(says).verdict, Verdict::AbandonedAtExit);
  const auto frees_in_exit = [](Trace& t) {
    t.Event(ProcessEvent::Exit);
    t.Host(faults::HostCall::Deallocate, 0x5000);
  };
  EXPECT_EQ(LeaveAfter(frees_in_exit, false).verdict, Verdict::AbandonedAtExit);
}

// An allocator returns its pools when it likes; a program returns a descriptor because it wants to.
TEST(Judge, GivingBackAMappingIsNoUnwindingAndADescriptorIs) {
  const auto leave = [](faults::HostCall takes, faults::HostCall gives) {
    Trace t;
    t.Host(takes, 0x5000, 4096);
    t.CreateStream(0x11);
    t.Call(CallId::EventCreate).Refused();
    t.Host(gives, 0x5000, 4096);
    t.Event(ProcessEvent::Exit);
    return JudgeTrial(t).verdict;
  };
  EXPECT_EQ(leave(faults::HostCall::Map, faults::HostCall::Unmap), Verdict::AbandonedAtExit);
  EXPECT_EQ(leave(faults::HostCall::DescriptorOpen, faults::HostCall::DescriptorClose), Verdict::Leak);
}

// A trial that goes on after its fault; `does` comes on its way. `flags`: what the probes of both runs were.
template <typename Does>
Judgement OnTheWay(std::uint32_t flags, Does does) {
  Trace after;
  after.CreateStream(0).Refused();
  does(after);
  after.Free(0);
  JournalImage rehearsal(Rehearsal());
  JournalImage trial(after);
  rehearsal.Flags(flags);
  trial.Flags(flags);
  return Judge(rehearsal.Evidence(), trial.Evidence(1), true, {});
}

TEST(Judge, WhatTheHostLosesChangesNoVerdictWhereNobodyAskedForIt) {
  const auto loses = [](Trace& t) {
    t.Host(faults::HostCall::MutexInit, 0x5000);
    t.Host(faults::HostCall::DescriptorOpen, 0x7);
  };
  const Judgement asked = OnTheWay(0, loses);
  EXPECT_EQ(asked.verdict, Verdict::Leak);
  EXPECT_EQ(asked.findings.size(), 2U);
  const Judgement shown = OnTheWay(faults::kHeapLeftOut, loses);
  EXPECT_EQ(shown.verdict, Verdict::Pass);
  EXPECT_THAT(shown.findings, IsEmpty());
  ASSERT_EQ(shown.notes.size(), 2U);
  for (const harness::TrialFinding& note : shown.notes) EXPECT_EQ(note.rule, Rule::HostLeft);
  EXPECT_NE(Words(shown.notes[0].detail).find("may have been freed"), std::string::npos) << "of a mutex";
  EXPECT_EQ(Words(shown.notes[1].detail), "");
}

TEST(Judge, AWrongMutexChangesNoVerdictWhereNobodyAskedForIt) {
  const auto breaks = [](Trace& t) {
    t.Host(faults::HostCall::MutexInit, 0x5000);
    t.Host(faults::HostCall::MutexDestroyedLocked, 0x5000);
    t.Host(faults::HostCall::MutexDestroy, 0x5000);
  };
  EXPECT_EQ(OnTheWay(0, breaks).verdict, Verdict::Misuse);
  const Judgement shown = OnTheWay(faults::kHeapLeftOut, breaks);
  EXPECT_EQ(shown.verdict, Verdict::Pass);
  ASSERT_EQ(shown.notes.size(), 1U);
  EXPECT_EQ(shown.notes[0].rule, Rule::HostMisused);
  EXPECT_EQ(Words(shown.notes[0].detail), "mutex destroyed while locked");
}

TEST(Judge, ADriverObjectIsLostWhateverTheHostShows) {
  const Judgement judgement = OnTheWay(faults::kHeapLeftOut, [](Trace& t) {
    t.Host(faults::HostCall::DescriptorOpen, 0x7);
    t.CreateStream(0x11);
  });
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].kind, Kind::Stream);
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::HostLeft);
}

// A background thread's descriptor, or one that is closed on every path: without being asked nobody is told that the program unwound.
TEST(Judge, AClosedDescriptorIsNoUnwindingWhereNobodyAskedForIt) {
  const auto leave = [](std::uint32_t flags) {
    Trace t;
    t.Host(faults::HostCall::DescriptorOpen, 0x7);
    t.CreateStream(0x11);
    t.Call(CallId::EventCreate).Refused();
    t.Host(faults::HostCall::DescriptorClose, 0x7);
    t.Event(ProcessEvent::Exit);
    const JournalImage before(Rehearsal());
    JournalImage after(t);
    after.Flags(flags);
    return Judge(before.Evidence(), after.Evidence(1), true, {}).verdict;
  };
  EXPECT_EQ(leave(0), Verdict::Leak);
  EXPECT_EQ(leave(faults::kHeapLeftOut), Verdict::AbandonedAtExit);
}

// No rehearsal tells what an interpreter keeps from what the program does.
TEST(Judge, AFaultFreeRunTellsWhatTheCLibraryKeepsFromWhatTheProgramDoes) {
  Trace t;
  t.CreateStream(0x11);
  t.Host(faults::HostCall::DescriptorFound, 0x5).Flags(faults::kForwarded | faults::kKeptByLibrary);
  t.Host(faults::HostCall::DescriptorOpen, 0x7);
  const Judgement judgement = Judge(t);
  std::map<Rule, Kind> notes;
  for (const harness::TrialFinding& note : judgement.notes) notes[note.rule] = note.kind;
  EXPECT_EQ(judgement.notes.size(), 3U);
  EXPECT_EQ(notes.at(Rule::KeptByLibrary), Kind::FileDescriptor);
}

TEST(Judge, OfAChildThatWroteNoExitNothingIsClaimed) {
  for (const bool exits : {false, true}) {
    Trace t;
    t.Event(ProcessEvent::Start);
    t.Event(ProcessEvent::Fork, 200, kProcess);
    t.Push(0xa).Process(200);
    t.CreateStream(0x11).Process(200);
    t.CreateStream(0).Process(200).Refused();
    if (exits) t.Event(ProcessEvent::Exit, 200);
    t.Event(ProcessEvent::Exit);
    const Judgement judgement = JudgeTrial(t);
    EXPECT_EQ(judgement.verdict, exits ? Verdict::AbandonedAtExit : Verdict::NotExercised);
    EXPECT_EQ(judgement.unjudged, !exits);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_FALSE(judgement.notes.empty());
    EXPECT_EQ(judgement.notes[0].rule, exits ? Rule::AbandonedAtExit : Rule::Unjudged);
  }
}

// Module 0 is the program, module 1 the driver. The user object's destructor frees the block; the graph holds the user object.
Trace GraphThatOwnsABlock(bool refused) {
  Trace t;
  t.Host(faults::HostCall::Allocate, 0x5000, 40).Stack(1);
  t.Host(faults::HostCall::Allocate, 0x6000, 24).Stack(2);
  t.Call(CallId::GraphCreate).Out(0, 0x1);
  const Step destroy = t.Call(CallId::GraphDestroy).In(0, 0x1);
  if (refused) {
    Step(destroy).Refused(CUDA_ERROR_INVALID_VALUE);
    t.Call(CallId::StreamCreate).Out(0, 0x10);
    t.DestroyStream(0x10);
  } else {
    t.Host(faults::HostCall::Deallocate, 0x5000).Stack(3);
    t.Host(faults::HostCall::Deallocate, 0x6000).Stack(4);
  }
  return t;
}

TEST(Judge, ABlockWhoseDestructorNeverRanIsNoLeak) {
  const auto with_stacks = [](JournalImage& image) {
    image.Module("/prog", {1}).Module("/usr/lib/libcuda.so.1", {2});
    image.Stack(1, {JournalImage::Frame(0, 1)}).Stack(2, {JournalImage::Frame(0, 2)});
    image.Stack(3, {JournalImage::Frame(0, 3), JournalImage::Frame(1, 1), JournalImage::Frame(0, 9)});
    image.Stack(4, {JournalImage::Frame(0, 4)});
  };
  JournalImage before(GraphThatOwnsABlock(false));
  JournalImage after(GraphThatOwnsABlock(true));
  with_stacks(before);
  with_stacks(after);
  const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);  // the other block is the program's own to free
  EXPECT_EQ(judgement.findings[0].bytes, 24U);
  ASSERT_EQ(judgement.notes.size(), 2U);
  EXPECT_EQ(judgement.notes[0].kind, Kind::Graph);
  EXPECT_EQ(judgement.notes[1].kind, Kind::HostHeap);
  EXPECT_EQ(judgement.notes[1].rule, Rule::ReleaseRefused);
  EXPECT_EQ(judgement.notes[1].where.call, static_cast<std::uint16_t>(CallId::GraphDestroy));
}

}  // namespace
}  // namespace cuaudit::testing::judge_test
