// SPDX-License-Identifier: MIT
// Contexts that a function takes off and puts back, whichever way. The wrong twins are in suites/planted/put_back_test.cc.
#include "suites/support/cases/put_back.h"

#include <string>
#include <string_view>
#include <utility>

#include "suites/support/cases/last_resort.h"

namespace cuaudit::testing::put_back_test {
namespace {

using driver::CallId;
using harness::Judgement;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <typename Program>
void ExpectSilent(const Program& program, bool right, std::string_view label) {
  const CaseRow row(label);
  EXPECT_THAT(JudgeProgram(program, right).findings, IsEmpty());
}

// Without a fault, too.
template <typename Program>
void ExpectBalanced(const Program& program, std::string_view label) {
  ExpectSilent(program, true, label);
  const JournalImage alone(program(Run::FaultFree));
  EXPECT_THAT(Judge(alone.Evidence(), alone.Evidence(), false, {}).findings, IsEmpty());
}

CUAUDIT_CASE(ContextStack, AFunctionGoesBackByAPush) {
  ExpectBalanced(SwapsItsContext<Swap::PopsAndPushes>, "pop and push");
  ExpectBalanced(SwapsItsContext<Swap::NullAndPushes>, "null and push");
  ExpectBalanced(SwapsItsContext<Swap::Floats>, "a floating context");
  ExpectBalanced(SwapsItsContext<Swap::PushesTwice>, "one push for a pop");
  ExpectBalanced(SwapsItsContext<Swap::AsideForAnother>, "another context in between");
}
CUAUDIT_CASE(ContextStack, AsManyAsTheFaultFreeRunLeaves) {
  for (const std::uint32_t pushes : {1U, 2U})
    EXPECT_THAT(JudgeRuns(LeavesEntries(pushes, false), LeavesEntries(pushes, true)).findings, IsEmpty());
}
CUAUDIT_CASE(ContextNotRestored, AnEarlierWayBackWasRefused) { ExpectSilent(GivesUpItsWayBack, true, "given up"); }

CUAUDIT_CASE(ContextNotRestored, TakenOffAndPutBack) {
  ExpectBalanced(SwapsItsContext<Swap::Aside>, "of a set one");
  ExpectBalanced(SwapsItsContext<Swap::AsideOfCreated>, "of a created one");
  ExpectBalanced(SwapsItsContext<Swap::AsideOfUnknown>, "of an unknown one");
  ExpectBalanced(SwapsItsContext<Swap::AsideAndSets>, "by cuCtxSetCurrent");
  ExpectBalanced(SwapsItsContext<Swap::AsideByGuards>, "by guards");
}
CUAUDIT_CASE(ContextNotRestored, ItsChangeIsAlsoAWayBack) {
  ExpectSilent(GoesToItAgain<Earlier::Created>, true, "created by the caller");
  ExpectSilent(GoesToItAgain<Earlier::CreatedAndKept>, true, "created and never taken off");
  ExpectSilent(GoesToItAgain<Earlier::SecondTurn>, true, "the second time");
  ExpectSilent(GoesToItAgain<Earlier::OfTheCaller>, true, "a third one");
}
CUAUDIT_CASE(ContextNotRestored, NobodyGoesThereASecondTime) { ExpectSilent(ComesBackOnce, true, "once"); }
CUAUDIT_CASE(ContextNotRestored, NoneWasThereToPutBack) { ExpectSilent(PutsBackNone, true, "none"); }
CUAUDIT_CASE(ContextNotRestored, TheFaultFreeRunStaysThereToo) { ExpectSilent(StaysTheSecondTime, true, "the second time"); }
CUAUDIT_CASE(ContextNotRestored, ItsOwnContextCouldNotBeDestroyed) {
  ExpectSilent(CannotDestroyItsOwn<false>, true, "own");
  ExpectSilent(CannotDestroyItsOwn<true>, true, "own, said not to be made");
}
CUAUDIT_CASE(ContextNotRestored, WhatCouldNotBeDestroyedIsPutBack) { ExpectSilent(KeepsWhatItCouldNotDestroy, true, "kept"); }
CUAUDIT_CASE(ContextNotRestored, AChildEndsOneUnderTheSameHandle) {
  ExpectSilent(AChildEndsOneOfItsOwn<false>, true, "destroyed");
  ExpectSilent(AChildEndsOneOfItsOwn<true>, true, "kept");
}
CUAUDIT_CASE(ContextNotRestored, TheWayBackIsTriedAgain) { ExpectSilent(SetsItBackTwice, true, "set twice"); }

CUAUDIT_CASE(DoubleRelease, OnlyTheCallerGivesBackWhatItHolds) {
  ExpectSilent(GivesBackTheCallers<CallId::MemHostRegister_v2, CallId::MemHostUnregister>, true, "registration");
  ExpectSilent(GivesBackTheCallers<CallId::MemMap, CallId::MemUnmap>, true, "mapping");
}

// Left alone; reset in every run, whoever uses it then; reset with nothing in it.
CUAUDIT_CASE(Deficit, AContextThatIsNobodyElses) {
  ExpectSilent(ResetsUnderItsCaller<CallId::StreamCreate, CallId::StreamDestroy_v2>, true, "given back");
  ExpectSilent(ResetsUnderItsCaller<CallId::EventCreate, CallId::EventSynchronize>, true, "waited for");
  ExpectSilent(ResetsUnderItsCaller<CallId::MemAlloc_v2, CallId::MemsetD8_v2>, true, "written");
  const auto resets = [](bool in_every_run, Run run) {
    const bool fails = run != Run::FaultFree;
    Trace t;
    t.Retain().Stack(101);
    t.CreateStream(0x10).Stack(102);
    Step alloc = t.Alloc(0x1000).Stack(103);
    if (fails) alloc.Refused();
    if (!fails) t.Free(0x1000).Stack(104);
    if (!in_every_run) t.DestroyStream(0x10).Stack(105);
    if (fails || in_every_run) t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(fails ? 106 : 107);
    if (in_every_run) t.DestroyStream(0x10).Stack(105).Fails(CUDA_ERROR_INVALID_HANDLE);
    t.ReleasePrimary().Stack(108);
    return t;
  };
  ExpectSilent([&](Run run) { return resets(true, run); }, true, "reset in every run");
  ExpectSilent([&](Run run) { return resets(false, run); }, true, "reset with nothing in it");
}

// The program resets its device after an error that only a reset ends, and then drops its handles or clears them; also when the reset is
// refused.
CUAUDIT_CASE(Deficit, AContextThatWasLostBeforeItsReset) {
  enum class Then { Drops, Clears, IsRefused };
  for (const Then then : {Then::Drops, Then::Clears, Then::IsRefused}) {
    const auto program = [then](Run run) {
      const bool fails = run != Run::FaultFree;
      Trace t;
      t.Retain().Stack(101);
      t.CreateStream(0x10).Stack(102);
      t.Alloc(0x1000).Stack(103);
      Step work = t.Call(CallId::StreamSynchronize).In(0, 0x10).Stack(104);
      if (fails) work.Refused(CUDA_ERROR_ILLEGAL_ADDRESS);
      if (fails) t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(105);
      if (fails && then == Then::IsRefused) t.Last().Refused(CUDA_ERROR_NOT_INITIALIZED);
      if (then == Then::Drops || !fails) {
        t.DestroyStream(0x10).Stack(106);
        if (fails) t.Last().Fails(CUDA_ERROR_INVALID_HANDLE);
        t.Free(0x1000).Stack(107);
        if (fails) t.Last().Fails(CUDA_ERROR_INVALID_VALUE);
      }
      t.ReleasePrimary().Stack(108);
      return t;
    };
    const CaseRow row(then == Then::Drops ? "drops" : then == Then::Clears ? "clears" : "is_refused");
    const Judgement judgement = JudgeProgram(program, false);
    EXPECT_THAT(judgement.findings, IsEmpty());
    const bool drops = then == Then::Drops;  // each handle, too late, and the reset excuses that
    EXPECT_EQ(judgement.verdict, drops ? harness::Verdict::Pass : harness::Verdict::ReleaseRefused);
    EXPECT_EQ(judgement.notes.size(), drops ? 0U : 2U);
  }
}

template <Resort how>
void ExpectGivingUp(std::string_view label) {
  const CaseRow row(label);
  const Judgement judgement = JudgeProgram(ResetsItsDevice<how>, true);
  EXPECT_EQ(judgement.verdict, harness::Verdict::AbandonedAtExit);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

CUAUDIT_CASE(Orphaned, AnErrorHandlerThatResetsItsDeviceAndExits) {
  ExpectGivingUp<Resort::Resets>("resets");
  ExpectGivingUp<Resort::ResetsAndDrops>("resets and drops");
}

// What the caller does next belongs to no context.
CUAUDIT_CASE(ContextNotRestored, TheCallerNeedsNoContext) {
  const auto program = [](Run run) {
    const bool fails = run != Run::FaultFree;
    Trace t;
    t.Call(CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
    t.Call(CallId::CtxSetCurrent).In(0, 0xb).Context(kCallers).Stack(InHelper(1, 1));
    Step alloc = t.Alloc(0x1000).Context(0xb).Stack(InHelper(1, 2));
    if (fails) alloc.Refused();
    if (!fails) t.Free(0x1000).Context(0xb).Stack(InHelper(1, 3));
    if (!fails) t.Call(CallId::CtxSetCurrent).In(0, kCallers).Context(0xb).Stack(InHelper(1, 4));
    const std::uint64_t current = fails ? 0xb : kCallers;
    t.Call(CallId::GraphCreate).Out(0, 0x90).Context(current).Stack(103);
    t.Call(CallId::MemCreate).Out(0, 0x70).In(1, 0x1000).Context(current).Stack(104);
    t.Call(CallId::MemAddressReserve).Out(0, 0x100000).In(1, 0x1000).Context(current).Stack(105);
    t.Call(CallId::LibraryLoadData).Out(0, 0x50).Context(current).Stack(106);
    t.Call(CallId::LibraryUnload).In(0, 0x50).Context(current).Stack(107);
    t.Call(CallId::MemAddressFree).In(0, 0x100000).In(1, 0x1000).Context(current).Stack(108);
    t.Call(CallId::MemRelease).In(0, 0x70).Context(current).Stack(109);
    t.Call(CallId::GraphDestroy).In(0, 0x90).Context(current).Stack(110);
    return t;
  };
  ExpectSilent(program, false, "graph, physical memory, range, library");
}

// Marked cycles that begin in a context and end in it.
CUAUDIT_CASE(ContextStack, ACyclePutsBackWhatItTookOff) {
  enum class Before { Set, Created, Pushed, Unknown };
  for (const Before before : {Before::Set, Before::Created, Before::Pushed, Before::Unknown}) {
    for (const bool sets : {false, true}) {
      const CaseRow row(std::string("before ") + std::to_string(static_cast<int>(before)) + (sets ? ", sets another" : ""));
      Trace t;
      if (before == Before::Set) t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0);
      if (before == Before::Created) t.Call(CallId::CtxCreate_v2).Out(0, 0xc).Context(0);
      if (before == Before::Pushed) t.Push(0xc).Context(0);
      for (const std::uint32_t cycle : {1U, 2U}) {
        t.Mark(faults::MarkKind::CycleBegin).Cycle(cycle);
        if (sets) t.Call(CallId::CtxSetCurrent).In(0, 0xd).Context(0xc).Cycle(cycle);
        t.Pop(sets ? 0xd : 0xc).Context(sets ? 0xd : 0xc).Cycle(cycle);
        t.Push(0xc).Context(0).Cycle(cycle);
        t.Mark(faults::MarkKind::CycleEnd).Cycle(cycle);
      }
      if (before == Before::Pushed) t.Pop(0xc).Context(0xc);
      if (before == Before::Created) t.Call(CallId::CtxDestroy_v2).In(0, 0xc).Context(0xc);
      EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
    }
  }
}

// The pop is carried out, and the program is told that it failed. It sets its caller's context, and takes it aside once more.
CUAUDIT_CASE(ContextStack, ACycleIsToldThatItsPopFailed) {
  Trace t;
  t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0);
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  t.Call(CallId::CtxSetCurrent).In(0, 0xd).Context(0xc).Cycle(1);
  t.Pop(0xd).Context(0xd).Cycle(1).After(CUDA_ERROR_UNKNOWN);
  t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0).Cycle(1);
  t.Pop(0xc).Context(0xc).Cycle(1);
  t.Push(0xc).Context(0).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(ContextStack, ACycleMayNotPutItBack) {
  for (const CallId back : {CallId::CtxPushCurrent_v2, CallId::CtxSetCurrent}) {
    const CaseRow row(driver::Name(driver::BaseOf(back)));
    Trace t;
    t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0);
    for (const std::uint32_t cycle : {1U, 2U}) {
      t.Mark(faults::MarkKind::CycleBegin).Cycle(cycle);
      if (cycle == 1) t.Pop(0xc).Context(0xc).Cycle(cycle);
      if (cycle == 1) t.Call(back).In(0, 0xc).Context(0).Cycle(cycle).Refused(CUDA_ERROR_INVALID_CONTEXT);
      t.Mark(faults::MarkKind::CycleEnd).Cycle(cycle);
    }
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
}

// The driver made the context current and the program was told that it had not. The destruction takes off the entry where it then stands.
CUAUDIT_CASE(ContextStack, DestroyedWhereADeniedCallPutIt) {
  Trace t;
  t.Push(0xa).Context(0);
  t.Call(CallId::CtxSetCurrent).In(0, 0xb).Context(0xa).After();
  t.Call(CallId::CtxDestroy_v2).In(0, 0xb).Context(0xb);
  t.Pop(0).Context(0).Fails(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(ContextStack, DestroyedAfterADeniedCallPutTheFormerBack) {
  Trace t;
  t.Push(0xa).Context(0);
  t.Call(CallId::CtxSetCurrent).In(0, 0xb).Context(0xa);
  t.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0xb).After();
  t.Call(CallId::CtxDestroy_v2).In(0, 0xb).Context(0xa);
  t.Pop(0xa).Context(0xa);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
}

// The runtime asks for the current context before it frees. When that is refused, the program cannot free: its release was refused.
CUAUDIT_CASE(Orphaned, ARuntimeThatIsCutShortBeforeItFrees) {
  for (const auto& [blocks, denied] : {std::pair{1U, false}, {2U, false}, {1U, true}}) {
    const CaseRow row(denied ? "denied" : blocks == 1 ? "one block" : "two blocks");
    const Judgement judgement =
        JudgeProgram([blocks = blocks, denied = denied](Run run) { return FreesByTheRuntime(run, blocks, denied); }, true);
    EXPECT_THAT(judgement.findings, IsEmpty());
    EXPECT_EQ(judgement.verdict, harness::Verdict::ReleaseRefused);
  }
}

// The driver has taken the context off, and the program was told that it had not.
CUAUDIT_CASE(ContextStack, TakenOffByADeniedCall) {
  Trace pops;  // its own, and its caller's
  pops.Push(0xb).Context(0);
  pops.Push(0xa).Context(0xb);
  pops.Call(CallId::CtxSetCurrent).In(0, 0).Context(0xa).After();
  pops.Pop(0xb).Context(0xb);
  pops.Pop(0).Context(0).Fails(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(Wrong(pops.Fold()), IsEmpty());
  Trace again;
  again.Push(0xa).Context(0);
  again.Call(CallId::CtxSetCurrent).In(0, 0).Context(0xa).After();
  again.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0);
  again.Pop(0xa).Context(0xa);
  EXPECT_THAT(Wrong(again.Fold()), IsEmpty());
  Trace foreign;  // made current before the first record
  foreign.Call(CallId::CtxSetCurrent).In(0, 0).Context(0xf).After();
  foreign.Call(CallId::CtxSetCurrent).In(0, 0xf).Context(0);
  foreign.Push(0xa).Context(0xf);
  foreign.Pop(0xa).Context(0xa);
  EXPECT_THAT(Wrong(foreign.Fold()), IsEmpty());
}

// None was current. The driver has made an entry of which the program does not know.
CUAUDIT_CASE(ContextStack, MadeByADeniedCall) {
  Trace t;
  t.Push(0xa).Context(0);
  t.Call(CallId::CtxSetCurrent).In(0, 0).Context(0xa);
  t.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0).After();
  t.Pop(0xa).Context(0xa);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

// What a denied push had put there is taken off, and the program knows of neither.
CUAUDIT_CASE(ContextStack, TakenOffAboveItsOwnByADeniedCall) {
  Trace t;
  t.Push(0xa).Context(0);
  t.Push(0xb).Context(0xa).After();
  t.Call(CallId::CtxSetCurrent).In(0, 0).Context(0xb).After();
  t.Pop(0xa).Context(0xa);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

// The driver has put the context back, and the program was told that it had not. The next cycles take it off and put it back again.
CUAUDIT_CASE(ContextStack, ACyclePutsItBackByADeniedCall) {
  for (const CallId back : {CallId::CtxPushCurrent_v2, CallId::CtxSetCurrent}) {
    for (const bool again : {false, true}) {
      const CaseRow row(std::string(driver::Name(driver::BaseOf(back))) + (again ? ", tried again" : ""));
      Trace t;
      t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0);
      for (const std::uint32_t cycle : {1U, 2U, 3U}) {
        t.Mark(faults::MarkKind::CycleBegin).Cycle(cycle);
        t.Pop(0xc).Context(0xc).Cycle(cycle);
        if (cycle == 1) t.Call(back).In(0, 0xc).Context(0).Cycle(cycle).After(CUDA_ERROR_INVALID_CONTEXT);
        if (cycle != 1 || again) t.Push(0xc).Context(cycle == 1 ? 0xc : 0).Cycle(cycle);
        t.Mark(faults::MarkKind::CycleEnd).Cycle(cycle);
      }
      EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
    }
  }
}

// A texture is destroyed in its context, and the program believes that this one is current.
CUAUDIT_CASE(WrongContext, TheContextWasTakenOffByADeniedCall) {
  for (const CallId off : {CallId::CtxSetCurrent, CallId::CtxPopCurrent_v2}) {
    const CaseRow row(driver::Name(driver::BaseOf(off)));
    Trace t;
    t.Call(CallId::TexObjectCreate).Out(0, 0x10);
    t.Call(off).In(0, 0).Context(kContext).After();
    t.Call(CallId::TexObjectDestroy).In(0, 0x10).Context(0).Fails(CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
    EXPECT_THAT(Left(t.Fold()), ElementsAre("texture_object 1 release_refused"));
  }
}

}  // namespace
}  // namespace cuaudit::testing::put_back_test
