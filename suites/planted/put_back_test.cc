// SPDX-License-Identifier: MIT
// Contexts that a failing path takes off the stack or leaves there. The repaired twins are in suites/positive/put_back_test.cc.
#include "suites/support/cases/put_back.h"

#include "suites/support/cases/last_resort.h"

namespace cuaudit::testing::put_back_test {
namespace {

using driver::CallId;
using harness::Judgement;
using harness::Rule;
using ::testing::ElementsAre;

CUAUDIT_CASE(ContextNotRestored, TakenOffAndNotPushedAgain) {
  ExpectNotPutBack(SwapsItsContext<Swap::Aside>, Rule::ContextNotRestored, InHelper(1, 1), 103);
}
CUAUDIT_CASE(ContextNotRestored, ACreatedContextTakenOff) {
  ExpectNotPutBack(SwapsItsContext<Swap::AsideOfCreated>, Rule::ContextNotRestored, InHelper(1, 1), 103);
}
CUAUDIT_CASE(ContextNotRestored, AContextFromBeforeTheRecordsTakenOff) {
  ExpectNotPutBack(SwapsItsContext<Swap::AsideOfUnknown>, Rule::ContextNotRestored, InHelper(1, 1), 103);
}
CUAUDIT_CASE(ContextNotRestored, TakenOffAndNotSetAgain) {
  ExpectNotPutBack(SwapsItsContext<Swap::AsideAndSets>, Rule::ContextNotRestored, InHelper(1, 1), 103);
}
CUAUDIT_CASE(ContextNotRestored, TakenOffByAGuard) {
  ExpectNotPutBack(SwapsItsContext<Swap::AsideByGuards>, Rule::ContextNotRestored, Deeper(1, 1, 1), 103);
}

// The change at which the function leaves its caller's context is at the same time the way back from an earlier change.
CUAUDIT_CASE(ContextNotRestored, TheOtherContextWasCreatedByTheCaller) {
  ExpectNotPutBack(GoesToItAgain<Earlier::Created>, Rule::ContextNotRestored, InHelper(2, 1), 104);
}
CUAUDIT_CASE(ContextNotRestored, TheOtherContextWasCreatedAndNeverTakenOff) {
  ExpectNotPutBack(GoesToItAgain<Earlier::CreatedAndKept>, Rule::ContextNotRestored, InHelper(2, 1), 104);
}
CUAUDIT_CASE(ContextNotRestored, TheSecondTime) {
  ExpectNotPutBack(GoesToItAgain<Earlier::SecondTurn>, Rule::ContextNotRestored, InHelper(2, 1), 104);
}
CUAUDIT_CASE(ContextNotRestored, TheCallerPutsAThirdOneBack) {
  ExpectNotPutBack(GoesToItAgain<Earlier::OfTheCaller>, Rule::ContextNotRestored, InHelper(2, 1), 104);
}

// The owner of what the reset ended is not blamed: neither for its use or release, nor for what the context took along.
template <typename Program>
void ExpectReset(const Program& program, std::string_view label) {
  const CaseRow row(label);
  const Judgement judgement = JudgeProgram(program, false);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Deficit);
  EXPECT_EQ(judgement.findings[0].where.stack, InHelper(1, 3));
}

CUAUDIT_CASE(Deficit, TheCallersContextIsReset) {
  ExpectReset(ResetsUnderItsCaller<CallId::StreamCreate, CallId::StreamDestroy_v2>, "the caller gives back");
  ExpectReset(ResetsUnderItsCaller<CallId::EventCreate, CallId::EventSynchronize>, "the caller waits");
  ExpectReset(ResetsUnderItsCaller<CallId::MemAlloc_v2, CallId::MemsetD8_v2>, "the caller writes");
}

// The error that ended a context is over after the first reset, and says nothing of another device: a helper that resets then takes what
// others use.
CUAUDIT_CASE(Deficit, AResetLongAfterTheContextWasLost) {
  for (const bool other : {false, true}) {
    const auto program = [other](Run run) {
      const bool fails = run != Run::FaultFree;
      Trace t;
      t.Retain().Stack(101);
      if (other) t.Retain(0x9, 1).Stack(102);
      Step work = t.Call(CallId::CtxSynchronize).Stack(104);
      if (fails) work.Refused(CUDA_ERROR_ILLEGAL_ADDRESS);
      if (fails && !other) t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(105);
      t.Alloc(0x1000).Stack(103);
      if (fails) t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(InHelper(1, 3));
      t.Free(0x1000).Stack(106);
      if (fails) t.Last().Fails(CUDA_ERROR_INVALID_VALUE);
      t.ReleasePrimary().Stack(107);
      if (other) t.ReleasePrimary(1).Stack(108);
      return t;
    };
    const CaseRow row(other ? "another device" : "another reset");
    const Judgement judgement = JudgeProgram(program, false);
    ASSERT_EQ(judgement.findings.size(), 1U);
    EXPECT_EQ(judgement.findings[0].rule, Rule::Deficit);
  }
}

// Three blocks come from one place. Who still uses one of them is not blamed, and the other two are lost.
CUAUDIT_CASE(Orphaned, WhatNobodyMissesAfterAReset) {
  Causes(2);
  Also(Rule::Deficit, driver::Kind::PrimaryContext);
  const auto program = [](Run run) {
    const bool fails = run != Run::FaultFree;
    Trace t;
    t.Retain().Stack(101);
    for (const std::uint64_t block : {1U, 2U, 4U}) t.Alloc(block << 16U, block * 0x1000).Stack(102);
    Step alloc = t.Alloc(0x1000).Stack(InHelper(1, 1));
    if (fails) alloc.Refused();
    if (fails) t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(InHelper(1, 3));
    if (!fails) t.Free(0x1000).Stack(InHelper(1, 2));
    t.Call(CallId::MemsetD8_v2).In(0, 1U << 16U).In(2, 16).Stack(103);
    if (fails) t.Last().Fails(CUDA_ERROR_INVALID_VALUE);
    if (!fails) {
      for (const std::uint64_t block : {1U, 2U, 4U}) t.Free(block << 16U).Stack(104);
    }
    t.ReleasePrimary().Stack(105);
    return t;
  };
  const Judgement judgement = JudgeProgram(program, false);
  ASSERT_EQ(judgement.findings.size(), 2U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Deficit);
  EXPECT_EQ(judgement.findings[1].rule, Rule::Orphaned);
  EXPECT_EQ(judgement.findings[1].count, 2U);
  EXPECT_EQ(judgement.findings[1].bytes, 0x6000U);
}

template <Resort how>
void ExpectNoGivingUp(std::string_view label) {
  const CaseRow row(label);
  const Judgement judgement = JudgeProgram(ResetsItsDevice<how>, false);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Orphaned);
  EXPECT_EQ(judgement.findings[0].kind, driver::Kind::Stream);
}

CUAUDIT_CASE(Orphaned, AResetThatIsNoGivingUp) {
  ExpectNoGivingUp<Resort::TearsDown>("tears down");
  ExpectNoGivingUp<Resort::FreesBefore>("frees before");
  ExpectNoGivingUp<Resort::GoesOn>("goes on");
  ExpectNoGivingUp<Resort::DropsAnother>("drops another");
}

// The block could be freed although a reset was refused: nothing is lost then, or not yet, or the context is another one by now.
CUAUDIT_CASE(Orphaned, WhatARefusedResetLeavesToTheLastRelease) {
  enum class Lost { Never, Afterwards, Before };
  for (const Lost lost : {Lost::Never, Lost::Afterwards, Lost::Before}) {
    const CaseRow row(lost == Lost::Never ? "never" : lost == Lost::Afterwards ? "afterwards" : "before");
    const auto program = [lost](Run run) {
      const bool fails = run != Run::FaultFree;
      Trace t;
      t.Retain().Stack(101);
      t.CreateStream(0x10).Stack(102);
      const auto work = [&t](bool is_lost) {
        t.Call(CallId::StreamSynchronize).In(0, 0x10).Stack(103);
        if (is_lost) t.Last().Fails(CUDA_ERROR_ILLEGAL_ADDRESS);
      };
      work(fails && lost == Lost::Before);
      if (fails) t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(104).Refused(CUDA_ERROR_NOT_INITIALIZED);
      if (fails && lost == Lost::Before) t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(105);
      t.Alloc(0x1000).Stack(106);
      if (lost == Lost::Afterwards) work(fails);
      if (!fails) t.Free(0x1000).Stack(107);
      if (!fails || lost != Lost::Before) t.DestroyStream(0x10).Stack(108);
      t.ReleasePrimary().Stack(109);
      return t;
    };
    const Judgement judgement = JudgeProgram(program, false);
    ASSERT_EQ(judgement.findings.size(), 1U);
    EXPECT_EQ(judgement.findings[0].rule, Rule::Orphaned);
    EXPECT_EQ(judgement.findings[0].kind, driver::Kind::DeviceMemory);
  }
}

template <typename Program>
void ExpectTaken(const Program& program, driver::Kind kind) {
  const CaseRow row(kind);
  ExpectNotPutBack(program, Rule::DoubleRelease, 103, InHelper(1, 3));
}

CUAUDIT_CASE(DoubleRelease, OfWhatTheCallerHolds) {
  ExpectTaken(GivesBackTheCallers<CallId::MemHostRegister_v2, CallId::MemHostUnregister>, driver::Kind::HostRegistration);
  ExpectTaken(GivesBackTheCallers<CallId::MemMap, CallId::MemUnmap>, driver::Kind::Mapping);
}

CUAUDIT_CASE(ContextStack, PutBackTwice) { ExpectNotPutBack(SwapsItsContext<Swap::PushesTwice>, Rule::ContextStack, InHelper(1, 6), 0); }
CUAUDIT_CASE(ContextStack, AnotherContextStaysInItsPlace) {
  ExpectNotPutBack(SwapsItsContext<Swap::AsideForAnother>, Rule::ContextStack, InHelper(1, 2), 0);
}
// The fault-free run leaves one, and nobody knows whether that owes a pop. It allows one and not two.
CUAUDIT_CASE(ContextStack, OneMoreThanTheFaultFreeRunLeaves) {
  const Judgement judgement = JudgeRuns(LeavesEntries(1, false), LeavesEntries(2, true));
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::ContextStack);
  EXPECT_EQ(judgement.findings[0].count, 1U);
}
CUAUDIT_CASE(ContextNotRestored, AnEarlierWayBackWasRefused) {
  ExpectNotPutBack(GivesUpItsWayBack, Rule::ContextNotRestored, InHelper(2, 1), 103);
}
CUAUDIT_CASE(ContextNotRestored, NoneAfterItsOwnCouldNotBeDestroyed) {
  ExpectNotPutBack(CannotDestroyItsOwn<false>, Rule::ContextNotRestored, InHelper(1, 6), 103);
}
CUAUDIT_CASE(ContextNotRestored, TheCallerKeepsWhatItCouldNotDestroy) {
  ExpectNotPutBack(KeepsWhatItCouldNotDestroy, Rule::ContextNotRestored, InHelper(1, 1), 106);
}
CUAUDIT_CASE(ContextNotRestored, AChildEndsOneUnderTheSameHandle) {
  ExpectNotPutBack(AChildEndsOneOfItsOwn<false>, Rule::ContextNotRestored, InHelper(1, 1), 103);
}
CUAUDIT_CASE(ContextNotRestored, AChildCannotEndOneUnderTheSameHandle) {
  ExpectNotPutBack(AChildEndsOneOfItsOwn<true>, Rule::ContextNotRestored, InHelper(1, 1), 103);
}
CUAUDIT_CASE(ContextStack, AFloatingContextKeepsWhatWasPushed) {
  ExpectNotPutBack(SwapsItsContext<Swap::Floats>, Rule::ContextStack, InHelper(2, 1), 0);
}

// The context floats before the cycle. The cycle pushes it and forgets the pop.
CUAUDIT_CASE(ContextStack, PoppedBeforeTheCycleAndPushedInIt) {
  Trace t;
  t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0);
  t.Pop(0xc).Context(0xc);
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  t.Push(0xc).Context(0).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

// The cycle puts back what it popped, and pushes it once more.
CUAUDIT_CASE(ContextStack, ACyclePutsItBackTwice) {
  Trace t;
  t.Call(CallId::CtxSetCurrent).In(0, 0xc).Context(0);
  t.Mark(faults::MarkKind::CycleBegin).Cycle(1);
  t.Call(CallId::CtxSetCurrent).In(0, 0xd).Context(0xc).Cycle(1);
  t.Pop(0xd).Context(0xd).Cycle(1);
  t.Push(0xc).Context(0).Cycle(1);
  t.Push(0xc).Context(0xc).Cycle(1);
  t.Mark(faults::MarkKind::CycleEnd).Cycle(1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("context_stack_unbalanced context_stack_entry"));
}

// A refused call of the runtime excuses the one block that it was to free: neither the next one nor a block that another call frees.
CUAUDIT_CASE(Orphaned, WhatARuntimeThatIsCutShortWasNotToFree) {
  for (const std::size_t blocks : {1U, 2U}) {
    const CaseRow row(blocks == 1 ? "cut short elsewhere" : "the next block");
    const Judgement judgement = JudgeProgram([blocks](Run run) { return FreesByTheRuntime(run, blocks); }, false);
    ASSERT_EQ(judgement.findings.size(), 1U);
    EXPECT_EQ(judgement.findings[0].rule, Rule::Orphaned);
    EXPECT_EQ(judgement.findings[0].count, 1U);
  }
}

}  // namespace
}  // namespace cuaudit::testing::put_back_test
