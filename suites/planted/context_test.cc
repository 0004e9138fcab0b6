// SPDX-License-Identifier: MIT
// Rules about contexts: orphaned children and unbalanced stacks.
#include "suites/support/cases/case.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::context_test {
namespace {

using driver::CallId;
using harness::Rule;
using harness::Verdict;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

CUAUDIT_CASE(ReliedOnContext, ChildrenOfAContextThatTheProgramMadeAndDestroyed) {
  Also(harness::Rule::Leak, driver::Kind::Stream);
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.CreateStream(0x10).Context(0xa);
  t.Alloc(0x1000).Context(0xa);
  t.CreateStream(0x11).Context(0xb);
  const Step destroy = t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1", "stream 1 relied_on_context", "device_memory 1 relied_on_context"));
  EXPECT_EQ(ledger.objects[1].released.begin, destroy.begin());
}

// A program that makes a context, a stream and an event. When the event fails, it only destroys the context.
Trace OwnContext(bool faulted) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(1);
  t.CreateStream(0x10).Context(0xa).Stack(2);
  Step event = t.Call(CallId::EventCreate).Context(0xa).Stack(3);
  if (faulted) event.Refused();
  if (!faulted) {
    event.Out(0, 0x11);
    t.Call(CallId::EventDestroy_v2).In(0, 0x11).Context(0xa).Stack(4);
    t.DestroyStream(0x10).Context(0xa).Stack(5);
  }
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa).Stack(6);
  return t;
}

harness::Judgement JudgeOwnContext(const harness::JudgeOptions& options) { return Judge(OwnContext(false), OwnContext(true), 1, options); }

CUAUDIT_CASE(ReliedOnContext, TheWayBackOnlyDestroysTheContext) {
  const harness::Judgement judgement = JudgeOwnContext({});
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::ReliedOnContext);
  EXPECT_EQ(judgement.notes[0].kind, driver::Kind::Stream);
  EXPECT_EQ(judgement.notes[0].where.call, static_cast<std::uint16_t>(CallId::CtxDestroy_v2));
}

// A program that makes a context and a stream, and destroys only the context when the event fails, which is refused, too.
enum class Whose { Own, Primary, Attached };
Trace CannotDestroy(Whose whose, bool faulted, bool goes_on = false) {
  Trace t;
  if (whose == Whose::Own) t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(1);
  if (whose == Whose::Primary) t.Retain(0xa).Stack(1);
  if (whose == Whose::Attached) t.Call(CallId::CtxAttach).Out(0, 0xa).Context(0xa).Stack(1);
  t.CreateStream(0x10).Context(0xa).Stack(2);
  Step event = t.Call(CallId::EventCreate).Context(0xa).Stack(3);
  if (faulted) event.Refused();
  if (!faulted) event.Out(0, 0x11);
  if (!faulted) t.Call(CallId::EventDestroy_v2).In(0, 0x11).Context(0xa).Stack(4);
  if (!faulted) t.DestroyStream(0x10).Context(0xa).Stack(5);
  Step end = whose == Whose::Primary ? t.ReleasePrimary() : t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  end.Stack(6);
  if (faulted) end.Refused(CUDA_ERROR_INVALID_CONTEXT);
  if (faulted && goes_on) t.Alloc(0x1000).Context(0xa).Stack(7);
  return t;
}

harness::Judgement JudgeCannotDestroy(Whose whose, const harness::JudgeOptions& options = {}, bool goes_on = false) {
  return Judge(CannotDestroy(whose, false), CannotDestroy(whose, true, goes_on), 1, options);
}

CUAUDIT_CASE(ReleaseRefused, WhatWouldHaveGoneWithItsOwnContext) {
  const harness::Judgement judgement = JudgeCannotDestroy(Whose::Own);
  EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 2U);
  for (const harness::TrialFinding& note : judgement.notes) {
    EXPECT_EQ(note.rule, Rule::ReleaseRefused);
    EXPECT_EQ(note.where.stack, 6U);
  }
}

void ExpectLost(const harness::Judgement& judgement, driver::Kind kind) {
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Leak);
  EXPECT_EQ(judgement.findings[0].kind, kind);
}

// Others may keep these contexts.
CUAUDIT_CASE(Leak, InAContextOfOthersThatCouldNotBeReleased) {
  for (const Whose whose : {Whose::Primary, Whose::Attached}) ExpectLost(JudgeCannotDestroy(whose), driver::Kind::Stream);
}
CUAUDIT_CASE(Leak, InItsOwnContextThatCouldNotBeDestroyedWhenSomebodyAsks) {
  harness::JudgeOptions options = {.own_orphans_count = true};
  ExpectLost(JudgeCannotDestroy(Whose::Own, options), driver::Kind::Stream);
}
CUAUDIT_CASE(Leak, AcquiredAfterTheDestructionWasRefused) {
  ExpectLost(JudgeCannotDestroy(Whose::Own, {}, true), driver::Kind::DeviceMemory);
}

// The driver declined the destruction, for a reason that is none of the plan's.
CUAUDIT_CASE(Leak, InItsOwnContextThatTheDriverDidNotDestroy) {
  const auto program = [](bool faulted) {
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(1);
    t.CreateStream(0x10).Context(0xa).Stack(2);
    Step event = t.Call(CallId::EventCreate).Out(0, 0x11).Context(0xa).Stack(3);
    if (faulted) event.Refused();
    if (!faulted) t.Call(CallId::EventDestroy_v2).In(0, 0x11).Context(0xa).Stack(4);
    if (!faulted) t.DestroyStream(0x10).Context(0xa).Stack(5);
    Step end = t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa).Stack(6);
    if (faulted) end.Fails(CUDA_ERROR_INVALID_VALUE);
    return t;
  };
  const harness::Judgement judgement = Judge(program(false), program(true));
  ASSERT_EQ(judgement.findings.size(), 2U) << "the context, and what it was to take along";
  EXPECT_EQ(judgement.findings[1].kind, driver::Kind::Stream);
}

// The context is older than the cycle, so its end is no business of the cycle.
CUAUDIT_CASE(Leak, InAContextMadeBeforeTheCycleThatCouldNotBeDestroyed) {
  const auto program = [](bool faulted) {
    Trace t;
    t.Alloc(0x1000).Context(0xb).Stack(7);
    t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(1);
    t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
    t.CreateStream(0x10).Context(0xa).Cycle(1).Stack(2);
    if (!faulted) t.DestroyStream(0x10).Context(0xa).Cycle(1).Stack(5);
    t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
    Step end = t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa).Stack(6);
    if (faulted) end.Refused(CUDA_ERROR_INVALID_CONTEXT);
    t.Free(0x1000).Context(0xb).Stack(8);  // it did not just give up
    return t;
  };
  ExpectLost(Judge(program(false), program(true)), driver::Kind::Stream);
}

CUAUDIT_CASE(Orphaned, InItsOwnContextWhenSomebodyAsks) {
  const harness::Judgement judgement = JudgeOwnContext({.own_orphans_count = true});
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Orphaned);
}

// The cycle is given a context that outlives it: what the cycle leaves there is lost, whoever destroys the context in the end.
CUAUDIT_CASE(Orphaned, InAContextMadeBeforeTheCycle) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0);
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  t.CreateStream(0x10).Context(0xa).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 orphaned"));
}

CUAUDIT_CASE(Orphaned, InAContextThatSomebodyElseMade) {
  for (const bool attaches : {false, true}) {
    Trace t;
    if (attaches) t.Call(CallId::CtxAttach).Out(0, 0xa);
    t.CreateStream(0x10).Context(0xa);
    t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa);
    EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 orphaned"));
  }
}

CUAUDIT_CASE(Orphaned, TheLastPrimaryReferenceTakesThemAlong) {
  Also(harness::Rule::Leak, driver::Kind::PrimaryContext);
  Also(harness::Rule::Leak, driver::Kind::Stream);
  Trace t;
  t.Retain();
  t.Retain();
  t.CreateStream(0x10);
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1"));
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 orphaned"));
}

// The thread was told that it did not get a second reference, and gave one back. What is left goes with the context all the same.
CUAUDIT_CASE(Orphaned, TheLastPrimaryReferenceThatTheProgramKnowsOf) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.Retain().After();
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 orphaned"));
}

CUAUDIT_CASE(Leak, AReferenceAfterThatOfARetainThatIsSaidToHaveFailed) {
  Trace t;
  t.Retain();
  t.Retain().After();
  t.ReleasePrimary();
  t.ReleasePrimary();
  t.Retain();
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1"));
}

CUAUDIT_CASE(Orphaned, AResetKillsTheChildrenAndKeepsTheReference) {
  Also(harness::Rule::Leak, driver::Kind::PrimaryContext);
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1 orphaned"));
}

CUAUDIT_CASE(Orphaned, OnlyTheFaultedRunLosesThem) {
  Trace rehearsal;
  rehearsal.Retain();
  rehearsal.CreateStream(0x10);
  rehearsal.Call(CallId::EventCreate).Out(0, 0x11);
  rehearsal.Call(CallId::EventDestroy_v2).In(0, 0x11);
  rehearsal.DestroyStream(0x10);
  rehearsal.ReleasePrimary();
  Trace trial;
  trial.Retain();
  trial.CreateStream(0x20);
  trial.Call(CallId::EventCreate).Refused();
  trial.ReleasePrimary();
  const harness::Judgement judgement = Judge(rehearsal, trial);
  EXPECT_EQ(judgement.verdict, Verdict::Leak);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Orphaned);
  EXPECT_EQ(judgement.findings[0].kind, driver::Kind::Stream);
  EXPECT_EQ(judgement.findings[0].where.call, static_cast<std::uint16_t>(CallId::DevicePrimaryCtxRelease_v2));
}

CUAUDIT_CASE(ContextStack, PushedAndNeverPopped) {
  Trace t;
  t.Push(0xa);
  t.Push(0xa);
  t.Pop(0xa);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("context_stack_unbalanced context_stack_entry"));
  EXPECT_THAT(Left(ledger), ElementsAre("context_stack_entry 1"));
}

// A destruction takes the entry off only where its context is the topmost one.
CUAUDIT_CASE(ContextStack, PushedAndNeverPoppedAfterADeniedCall) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, 0xc).Context(0);
  t.Pop(0xc).Context(0xc);
  t.Push(0xa).Context(0);
  t.Call(CallId::CtxSetCurrent).In(0, 0xb).Context(0xa).After();
  t.Call(CallId::CtxDestroy_v2).In(0, 0xc).Context(0xb);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

// Above the caller's entry stands what a denied push put there. A denied cuCtxSetCurrent exchanges that one, or takes it off.
CUAUDIT_CASE(ContextStack, PushedAndNeverPoppedBelowADeniedPush) {
  for (const std::uint64_t chosen : {0xcU, 0U}) {
    const CaseRow row(chosen == 0 ? "taken off" : "exchanged");
    Trace t;
    t.Push(0xa).Context(0);
    t.Push(0xb).Context(0xa).After();
    t.Call(CallId::CtxSetCurrent).In(0, chosen).Context(0xb).After();
    if (chosen != 0) t.Call(CallId::CtxDestroy_v2).In(0, chosen).Context(chosen);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
  }
}

// The program may pop the context once more that it believes is still there, and no other one.
CUAUDIT_CASE(ContextStack, PoppedTheCallersContextAfterADeniedCall) {
  Trace t;
  t.Push(0xb).Context(0xf);
  t.Push(0xa).Context(0xb);
  t.Call(CallId::CtxSetCurrent).In(0, 0).Context(0xa).After();
  t.Pop(0xb).Context(0xb);
  t.Pop(0xf).Context(0xf);
  t.Pop(0xe).Context(0xe);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

// A denied call put the context back once. The cycle takes it off once more, or what it pushes in the place of a denied entry is its own.
CUAUDIT_CASE(ContextStack, ACycleTakesOffWhatADeniedCallPutBack) {
  for (const bool pushes : {false, true}) {
    const CaseRow row(pushes ? "and pushes another" : "and no more");
    Trace t;
    t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0);
    t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
    t.Pop(0xc).Context(0xc).Cycle(1);
    t.Push(0xc).Context(0).Cycle(1).After();
    t.Pop(0xc).Context(0xc).Cycle(1);
    if (pushes) t.Push(0xd).Context(0).Cycle(1);
    if (!pushes) t.Push(0xc).Context(0).Cycle(1);
    if (!pushes) t.Pop(0xc).Context(0xc).Cycle(1);
    t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
    t.Mark(faults::MarkKind::CycleBegin).Cycle(2);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
  }
}

// A denied push and its pop in one cycle: the next push is one of its own.
CUAUDIT_CASE(ContextStack, PushedAgainAfterADeniedPushWasPopped) {
  Trace t;
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  t.Push(0xc).Context(0).Cycle(1).After();
  t.Pop(0xc).Context(0xc).Cycle(1);
  t.Push(0xc).Context(0).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

CUAUDIT_CASE(ContextStack, PoppedOnceTooFewByADestructor) {
  Trace t;
  t.Push(0xa);
  t.Push(0xa);
  t.Event(faults::ProcessEvent::Exit);
  t.Pop(0).Fails(CUDA_ERROR_DEINITIALIZED);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

CUAUDIT_CASE(ContextStack, PoppedTheCallersContext) {
  Trace t;
  t.Push(0xa).Context(0xc);
  t.Pop(0xa).Context(0xa);
  t.Pop(0xc).Context(0xc);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

CUAUDIT_CASE(ContextStack, StacksAreCountedPerThread) {
  Trace t;
  t.Push(0xa).Thread(1);
  t.Pop(0xa).Thread(2);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

// A cycle pops a context that was pushed, created or set before the cycle. It is wrong without a fault. What was pushed is missed only by
// the next cycle.
CUAUDIT_CASE(ContextStack, ACycleEndsWithLess) {
  for (const CallId before : {CallId::CtxPushCurrent_v2, CallId::CtxCreate_v2, CallId::CtxSetCurrent}) {
    const CaseRow row(driver::Name(driver::BaseOf(before)));
    Trace t;
    t.Call(before).In(0, 0xc).Context(0);
    t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
    t.Pop(0xc).Context(0xc).Cycle(1);
    t.Push(0xa).Context(0).Cycle(1);
    t.Pop(0xa).Context(0xa).Cycle(1);
    t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
    if (before == CallId::CtxPushCurrent_v2) t.Mark(faults::MarkKind::CycleBegin).Cycle(2);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
  }
}

// The cycle pops what its caller pushed, and the caller's own pop takes something else or finds nothing.
CUAUDIT_CASE(ContextStack, ACyclePopsForItsCaller) {
  for (const bool found : {false, true}) {
    const CaseRow row(found ? "takes" : "declined");
    Trace t;
    t.Push(0xc).Context(0);
    t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
    const std::uint64_t wrong = t.Pop(0xc).Context(0xc).Cycle(1).begin();
    t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
    Step last = t.Pop(found ? 0xd : 0).Context(found ? 0xd : 0).Cycle(1);
    if (!found) last.Fails(CUDA_ERROR_INVALID_CONTEXT);
    const harness::Ledger ledger = t.Fold();
    EXPECT_THAT(Wrong(ledger), ElementsAre("context_stack_unbalanced context_stack_entry"));
    ASSERT_EQ(ledger.violations.size(), 1U);
    EXPECT_EQ(ledger.violations[0].where.begin, wrong);
  }
}

CUAUDIT_CASE(ContextStack, LeftByACycleAndTidiedUpOnlyAtTheEnd) {
  Trace t;
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  t.Push(0xa).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  t.Pop(0xa);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

}  // namespace
}  // namespace cuaudit::testing::context_test
