// SPDX-License-Identifier: MIT
// What decides between two verdicts that lie close together: whose leftovers, which cycle, whose process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "harness/verdict/host/driver_owned.h"
#include "harness/verdict/steps.h"
#include "suites/support/journal_image.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::judge_details_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::MarkKind;
using faults::ProcessEvent;
using harness::Judgement;
using harness::Recovery;
using harness::Rule;
using harness::Verdict;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Judgement JudgeBeside(const Trace& rehearsal, const Trace& trial, int exit_status = 1) {
  const JournalImage before(rehearsal);
  const JournalImage after(trial);
  return Judge(before.Evidence(), after.Evidence(exit_status), true, {});
}

Trace GoodCycles() { return MarkedCycles().Good().Good().Good().trace; }

TEST(JudgeDetails, ALeakThatSpoilsTheNextCycleIsStillALeak) {
  MarkedCycles trial;
  trial.Failed(CUDA_ERROR_OUT_OF_MEMORY).Begin();
  trial.trace.Alloc(0x9000).Stack(1).Cycle(2);
  const Judgement judgement = JudgeBeside(GoodCycles(), trial.End(0).Good().trace);
  EXPECT_EQ(judgement.verdict, Verdict::Leak) << Name(judgement.verdict);
  ASSERT_THAT(judgement.findings, SizeIs(2));
  EXPECT_EQ(judgement.findings[1].rule, Rule::NotRecovered);
}

TEST(JudgeDetails, ALieAboutAReleaseExcusesNoOtherCall) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Alloc(0x5000).Stack(1).Cycle(1);
  trial.trace.Free(0x5000).After(CUDA_ERROR_INVALID_CONTEXT).Stack(2).Cycle(1);
  trial.End(CUDA_ERROR_INVALID_CONTEXT).Begin();
  trial.trace.Alloc(0x6000).Fails(CUDA_ERROR_OUT_OF_MEMORY).Stack(3).Cycle(2);
  const Judgement judgement = JudgeBeside(GoodCycles(), trial.End(0).Good().trace);
  EXPECT_EQ(judgement.verdict, Verdict::NotRecovered) << Name(judgement.verdict);
}

TEST(JudgeDetails, ACycleThatAlwaysSaysFailureHasRecovered) {
  const auto program = [](bool faulted) {
    MarkedCycles cycles;
    if (faulted) {
      cycles.Failed(CUDA_ERROR_OUT_OF_MEMORY);
    } else {
      cycles.Good();
    }
    cycles.Begin().End(-1);
    return cycles.Good().trace;
  };
  const Judgement judgement = JudgeBeside(program(false), program(true));
  EXPECT_EQ(judgement.recovery, Recovery::Checked);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

TEST(JudgeDetails, ACleanCycleThatReportsTheFirstErrorCodeHasNotRecovered) {
  static_assert(CUDA_ERROR_INVALID_VALUE == 1);
  MarkedCycles trial;
  trial.Failed(CUDA_ERROR_OUT_OF_MEMORY).Begin().End(CUDA_ERROR_INVALID_VALUE);
  const Judgement judgement = JudgeBeside(GoodCycles(), trial.Good().trace);
  EXPECT_EQ(judgement.verdict, Verdict::NotRecovered) << Name(judgement.verdict);
}

TEST(JudgeDetails, ACleanCycleThatReportedAFailureIsNotSavedByALaterSuccess) {
  MarkedCycles trial;
  trial.Failed(CUDA_ERROR_OUT_OF_MEMORY).Begin();
  trial.trace.Say(MarkKind::Report, -1).Cycle(2);
  const Judgement judgement = JudgeBeside(GoodCycles(), trial.End(0).Good().trace);
  EXPECT_EQ(judgement.verdict, Verdict::NotRecovered) << Name(judgement.verdict);
}

// The clean cycle of a lifecycle collides with work of the cycle before, whose wait was refused.
Judgement JudgeCleanCycleAfterARefusedWait(bool first_reports) {
  Trace rehearsal;
  rehearsal.Call(CallId::StreamSynchronize).Stack(1);
  Trace trial;
  trial.Call(CallId::StreamSynchronize).Refused(CUDA_ERROR_LAUNCH_FAILED).Stack(1);
  Trace clean;
  const auto first = clean.Call(CallId::MemsetD8Async).In(0, 0x1000).Stack(2);
  const auto second = clean.Call(CallId::MemcpyDtoHAsync_v2).In(1, 0x1000).Stack(3);
  clean.Misuse(driver::MisuseRule::UnorderedAccess, Kind::DeviceMemory, 0x1000, 16, second.begin(), first.begin()).In(5, 1);
  const JournalImage before(rehearsal);
  const JournalImage after(trial);
  const JournalImage again(clean);
  harness::CycleSteps steps;
  harness::StepTrace& work = steps.at(harness::StepName::Work);
  work.ran = work.returned = work.can_report = work.has_code = true;
  work.failed = first_reports;
  if (first_reports) work.code = CUDA_ERROR_LAUNCH_FAILED;
  harness::NextCycle next;
  next.ledger = again.ledger();
  next.journal = again.view();
  auto evidence = after.Evidence();
  evidence.steps = &steps;
  evidence.next = &next;
  return Judge(before.Evidence(), evidence, true, {});
}

TEST(JudgeDetails, ARefusedWaitExcusesTheNextCycleUnlessSuccessWasReported) {
  const Judgement excused = JudgeCleanCycleAfterARefusedWait(true);
  EXPECT_THAT(excused.findings, IsEmpty());
  ASSERT_THAT(excused.notes, SizeIs(1));
  EXPECT_EQ(excused.notes[0].rule, Rule::CouldNotKnow);
  const Judgement claimed = JudgeCleanCycleAfterARefusedWait(false);
  EXPECT_EQ(claimed.verdict, Verdict::NotRecovered) << Name(claimed.verdict);
  EXPECT_TRUE(std::any_of(claimed.findings.begin(), claimed.findings.end(),
                          [](const harness::TrialFinding& one) { return one.rule == Rule::UnorderedAccess; }));
}

TEST(JudgeDetails, WhyNoCleanCycleWasCheckedIsKept) {
  const JournalImage before(GoodCycles());
  const JournalImage dies(MarkedCycles().Failed(CUDA_ERROR_OUT_OF_MEMORY).trace);
  EXPECT_EQ(Judge(before.Evidence(), dies.Evidence(0, SIGSEGV), true, {}).recovery, Recovery::Died);
  Trace unmarked;
  unmarked.Alloc(0x5000).Refused();
  EXPECT_EQ(JudgeBeside(Trace(), unmarked).recovery, Recovery::NoMarks);
}

// 5000 is no CUresult: the program has error numbers of its own, which need not be those of its calls.
TEST(JudgeDetails, AnErrorNumberOfTheProgramsOwnIsNoWrongCode) {
  const Judgement judgement = JudgeBeside(GoodCycles(), MarkedCycles().Failed(5000).Good().Good().trace);
  EXPECT_EQ(judgement.verdict, Verdict::Pass) << Name(judgement.verdict);
  const Judgement unprompted = JudgeBeside(GoodCycles(), MarkedCycles().Failed(5000).Begin().End(5000).Good().trace);
  ASSERT_THAT(unprompted.findings, SizeIs(1));
  EXPECT_EQ(Words(unprompted.findings[0].detail), "the clean cycle reported 5000");
}

TEST(JudgeDetails, WhatWasReportedBeforeTheFaultSaysNothingOfIt) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Say(MarkKind::Report, 0).Cycle(1);  // of an earlier part
  trial.trace.Alloc(0x5000).Refused().Stack(1).Cycle(1);
  trial.trace.Mark(MarkKind::CycleEnd).Cycle(1);
  const Judgement judgement = JudgeBeside(GoodCycles(), trial.Good().Good().trace);
  EXPECT_EQ(judgement.said, harness::Said::Failure) << "by its exit status";
  EXPECT_THAT(judgement.findings, IsEmpty());
}

TEST(JudgeDetails, OutputThatWasClearedAgainIsNotWritten) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Say(MarkKind::Output, 1).Cycle(1);
  trial.trace.Alloc(0x5000).Refused().Stack(1).Cycle(1);
  trial.trace.Say(MarkKind::Output, 0).Cycle(1);
  const Judgement judgement = JudgeBeside(GoodCycles(), trial.End(CUDA_ERROR_OUT_OF_MEMORY).Good().Good().trace);
  EXPECT_EQ(judgement.verdict, Verdict::Pass) << Name(judgement.verdict);
}

// The rehearsal leaves one alive. The trial leaves that, and another that its context took along.
TEST(JudgeDetails, OfTheLivingAndTheOrphanedTheRehearsalsOwnIsAllowed) {
  Trace rehearsal;
  rehearsal.CreateStream(0x10).Stack(1);
  Trace trial;
  trial.CreateStream(0x10).Stack(1);
  trial.Call(CallId::EventCreate).Refused().Stack(2);
  trial.Retain(0xa).Stack(3);
  trial.CreateStream(0x20).Context(0xa).Stack(1);
  trial.ReleasePrimary().Stack(4);
  const Judgement judgement = JudgeBeside(rehearsal, trial);
  ASSERT_THAT(judgement.findings, SizeIs(1));
  EXPECT_EQ(judgement.findings[0].rule, Rule::Orphaned);
  ASSERT_THAT(judgement.notes, SizeIs(1));
  EXPECT_EQ(judgement.notes[0].rule, Rule::ProcessLifetime);
}

// A child that wrote no exit may have been killed: of it nothing is claimed, neither leftovers nor its context stack.
TEST(JudgeDetails, AChildIsAnswerableOnlyWhenItExited) {
  for (const bool exits : {false, true}) {
    Trace t;
    t.Event(ProcessEvent::Start);
    t.Event(ProcessEvent::Fork, 200, kProcess);
    t.Call(CallId::EventCreate).Refused();
    t.Push(0xa).Process(200);
    t.CreateStream(0x11).Process(200);
    if (exits) t.Event(ProcessEvent::Exit, 200);
    t.CreateStream(0x12);
    t.DestroyStream(0x12);
    t.Event(ProcessEvent::Exit);
    const Judgement judgement = JudgeBeside(Trace(), t);
    EXPECT_THAT(judgement.findings, SizeIs(exits ? 2 : 0)) << exits;
  }
}

TEST(JudgeDetails, AKilledChildDoesNotExcuseItsParent) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Event(ProcessEvent::Fork, 200, kProcess);
  t.CreateStream(0).Process(200).Refused();
  t.CreateStream(0x12);
  t.Event(ProcessEvent::Exit);
  const Judgement judgement = JudgeBeside(Trace(), t);
  EXPECT_EQ(judgement.verdict, Verdict::Leak) << Name(judgement.verdict);
}

TEST(JudgeDetails, AProgramThatDiedHadNoChanceToTidyItsContextStack) {
  Trace t;
  t.Push(0xa);
  t.Call(CallId::EventCreate).Refused();
  const JournalImage before{Trace()};
  const JournalImage after(t);
  const Judgement judgement = Judge(before.Evidence(), after.Evidence(0, SIGSEGV), true, {});
  ASSERT_THAT(judgement.findings, SizeIs(1));
  EXPECT_EQ(judgement.findings[0].rule, Rule::Crash);
}

// Module 0 is the program, module 1 the driver: the destructor of a user object that an executable graph holds frees the block.
TEST(JudgeDetails, AnExecutableGraphThatCouldNotBeDestroyedKeepsItsUserObjects) {
  const auto program = [](bool refused) {
    Trace t;
    t.Host(faults::HostCall::Allocate, 0x5000, 40).Stack(1);
    t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x1).In(1, 0x9);
    const Step destroy = t.Call(CallId::GraphExecDestroy).In(0, 0x1);
    if (refused) Step(destroy).Refused(CUDA_ERROR_INVALID_VALUE);
    if (!refused) t.Host(faults::HostCall::Deallocate, 0x5000).Stack(3);
    t.CreateStream(0x10);
    t.DestroyStream(0x10);
    return t;
  };
  JournalImage before(program(false));
  JournalImage after(program(true));
  for (JournalImage* image : {&before, &after}) {
    image->Module("/prog", {1}).Module("/usr/lib/libcuda.so.1", {2});
    image->Stack(1, {JournalImage::Frame(0, 1)}).Stack(3, {JournalImage::Frame(0, 3), JournalImage::Frame(1, 1)});
  }
  const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused) << Name(judgement.verdict);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

// A block that the driver took for itself after the fault, and one of a library that the program opened.
TEST(JudgeDetails, WhatIsTheDriversOrPartOfAnotherIsNoLeak) {
  Trace t;
  t.Call(CallId::EventCreate).Refused();
  t.Host(faults::HostCall::Allocate, 0x5000, 64).Stack(1);
  t.Host(faults::HostCall::Allocate, 0x6000, 64).Flags(faults::kForwarded | faults::kPartOfOther);
  t.CreateStream(0x12);
  t.DestroyStream(0x12);
  JournalImage trial(t);
  trial.Module("/usr/lib/libcuda.so.580.159.04").Stack(1, {JournalImage::Frame(0, 0x10)});
  harness::Ledger ledger = trial.ledger();
  harness::MarkDriverOwned(trial.view(), &ledger);
  const JournalImage rehearsal{Trace()};
  const harness::Evidence after = {&ledger, &trial.view(), {1, 0, false}};
  const harness::Evidence before = rehearsal.Evidence();
  const Judgement judgement = harness::Judge(before, after, true, {});
  EXPECT_THAT(judgement.findings, IsEmpty());
  EXPECT_THAT(judgement.notes, IsEmpty());
}

constexpr std::uint16_t kPipe = faults::kForwarded | faults::kEventOrPipe;

enum class Fate { Destroyed, Refused, Forgotten };

// A context with two pipes that a census alone found, which go with it. Before it: a call that the plan refuses, but not in a rehearsal.
Trace ContextWithPipes(Fate fate, bool rehearsal = false) {
  Trace t;
  if (!rehearsal) t.Call(CallId::EventCreate).Refused(CUDA_ERROR_OUT_OF_MEMORY);
  t.Call(CallId::CtxCreate_v4).Out(0, 0x70);
  t.Host(faults::HostCall::DescriptorFound, 0x5).Flags(kPipe);
  t.Host(faults::HostCall::DescriptorFound, 0x6).Flags(kPipe);
  if (fate == Fate::Destroyed) {
    t.Call(CallId::CtxDestroy_v2).In(0, 0x70);
    t.Host(faults::HostCall::DescriptorGone, 0x5);
    t.Host(faults::HostCall::DescriptorGone, 0x6);
  }
  if (fate == Fate::Refused) t.Call(CallId::CtxDestroy_v2).In(0, 0x70).Refused(CUDA_ERROR_INVALID_VALUE);
  t.CreateStream(0x10);
  t.DestroyStream(0x10);
  return t;
}

Judgement JudgePipes(const Trace& rehearsal, const Trace& trial, faults::DriverKind driver = faults::DriverKind::Genuine) {
  const JournalImage before(rehearsal);
  JournalImage after(trial);
  after.Driver(driver);
  return Judge(before.Evidence(), after.Evidence(1), true, {});
}

std::uint64_t Descriptors(const Judgement& judgement) {
  std::uint64_t count = 0;
  for (const harness::TrialFinding& finding : judgement.findings) count += finding.kind == Kind::FileDescriptor ? finding.count : 0;
  return count;
}

TEST(JudgeDetails, APipeOfAContextThatTheTrialKeepsIsTheDrivers) {
  const Trace rehearsal = ContextWithPipes(Fate::Destroyed, true);
  const Judgement refused = JudgePipes(rehearsal, ContextWithPipes(Fate::Refused));
  EXPECT_EQ(refused.verdict, Verdict::ReleaseRefused) << Name(refused.verdict);
  EXPECT_THAT(refused.findings, IsEmpty());
  ASSERT_THAT(refused.notes, SizeIs(1));
  EXPECT_EQ(refused.notes[0].kind, Kind::Context);
  EXPECT_EQ(Words(refused.notes[0].detail), "holds 2 descriptors of the driver");
  const Judgement leaked = JudgePipes(rehearsal, ContextWithPipes(Fate::Forgotten));
  ASSERT_THAT(leaked.findings, SizeIs(1));
  EXPECT_EQ(leaked.findings[0].kind, Kind::Context);
  EXPECT_EQ(Words(leaked.findings[0].detail), "holds 2 descriptors of the driver");
  EXPECT_THAT(leaked.notes, IsEmpty()) << "told under it, not beside it";
}

TEST(JudgeDetails, AnyOtherDescriptorIsTheProgramsToClose) {
  const Trace rehearsal = ContextWithPipes(Fate::Destroyed, true);
  EXPECT_EQ(Descriptors(JudgePipes(rehearsal, ContextWithPipes(Fate::Refused), faults::DriverKind::Simulated)), 2U);
  Trace more = ContextWithPipes(Fate::Refused);
  more.Host(faults::HostCall::DescriptorPipe, 0x7);   // by a wrapper
  more.Host(faults::HostCall::DescriptorFound, 0x8);  // no pipe
  EXPECT_EQ(Descriptors(JudgePipes(rehearsal, more)), 2U);
  Trace gone = ContextWithPipes(Fate::Destroyed);  // which keeps nothing
  gone.Host(faults::HostCall::DescriptorFound, 0x9).Flags(kPipe);
  EXPECT_EQ(Descriptors(JudgePipes(rehearsal, gone)), 1U);
}

TEST(JudgeDetails, AContextExcusesFourDescriptorsAndNotMore) {
  const Trace rehearsal = ContextWithPipes(Fate::Destroyed, true);
  Trace more = ContextWithPipes(Fate::Refused);
  for (std::uint64_t name = 0x20; name < 0x20 + 48; ++name) more.Host(faults::HostCall::DescriptorFound, name).Flags(kPipe);
  const Judgement judgement = JudgePipes(rehearsal, more);
  EXPECT_EQ(judgement.verdict, Verdict::Leak) << Name(judgement.verdict);
  EXPECT_EQ(Descriptors(judgement), 46U);
  ASSERT_THAT(judgement.notes, SizeIs(1));
  EXPECT_EQ(Words(judgement.notes[0].detail), "holds 4 descriptors of the driver");
}

// A reference opens no descriptor. The first one keeps a context that the rehearsal gave back, a second one does not keep another.
TEST(JudgeDetails, AReferenceOfAContextThatIsKeptAnywayExcusesNothing) {
  const auto run = [](int references, std::uint64_t pipes) {
    Trace t;
    if (references != 1 || pipes != 0) t.Call(CallId::EventCreate).Refused(CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < references; ++i) t.Call(CallId::DevicePrimaryCtxRetain).Out(0, 0x70).In(1, 0);
    for (std::uint64_t i = 0; i < pipes; ++i) t.Host(faults::HostCall::DescriptorFound, 0x20 + i).Flags(kPipe);
    return t;
  };
  EXPECT_EQ(Descriptors(JudgePipes(run(1, 0), run(2, 5))), 5U);
  EXPECT_EQ(Descriptors(JudgePipes(Trace(), run(1, 5))), 1U);
  EXPECT_EQ(Descriptors(JudgePipes(Trace(), run(2, 5))), 1U);
}

TEST(JudgeDetails, AContextThatTheRehearsalKeepsTooExcusesNothing) {
  Trace more = ContextWithPipes(Fate::Forgotten);
  more.Host(faults::HostCall::DescriptorFound, 0x7).Flags(kPipe);
  EXPECT_EQ(Descriptors(JudgePipes(ContextWithPipes(Fate::Forgotten, true), more)), 1U);
}

// The parent keeps its context in the rehearsal, too; the child's is what the trial has more.
TEST(JudgeDetails, AContextExcusesPipesOfItsOwnProcessAlone) {
  const auto run = [](bool rehearsal) {
    Trace t;
    t.Event(ProcessEvent::Start);
    t.Call(CallId::CtxCreate_v4).Out(0, 0x70);
    t.Event(ProcessEvent::Fork, 200, kProcess);
    if (!rehearsal) t.Call(CallId::EventCreate).Refused();
    t.Call(CallId::CtxCreate_v4).Out(0, 0x71).Process(200);
    if (rehearsal) t.Call(CallId::CtxDestroy_v2).In(0, 0x71).Process(200);
    if (!rehearsal) {
      t.Host(faults::HostCall::DescriptorFound, 0x5).Flags(kPipe).Process(200);
      t.Host(faults::HostCall::DescriptorFound, 0x6).Flags(kPipe);
    }
    t.Event(ProcessEvent::Exit, 200);
    t.CreateStream(0x10);
    t.DestroyStream(0x10);
    t.Event(ProcessEvent::Exit);
    return t;
  };
  EXPECT_EQ(Descriptors(JudgePipes(run(true), run(false))), 1U);  // the parent's
}

}  // namespace
}  // namespace cuaudit::testing::judge_details_test
