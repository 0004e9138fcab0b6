// SPDX-License-Identifier: MIT
// A release was refused or denied, and the next cycle stumbles over what it left; programs that say what happened, work again afterwards,
// or go on without an optional feature that is declared benign: not a word about them.
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"
#include "suites/support/journal_image.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::recovery_test {
namespace {

using driver::CallId;
using faults::MarkKind;
using harness::Judgement;
using harness::Recovery;
using harness::Verdict;
using ::testing::IsEmpty;

void ExpectSilence(const MarkedCycles& rehearsal, const MarkedCycles& trial, Recovery recovery) {
  const Judgement judgement = Judge(rehearsal.trace, trial.trace, 0);
  EXPECT_THAT(judgement.findings, IsEmpty());
  EXPECT_EQ(judgement.recovery, recovery);
}

void ExpectSilence(const MarkedCycles& trial) { ExpectSilence(MarkedCycles().Good().Good().Good(), trial, Recovery::Refused); }

// A cycle that registers host memory, and the release of that was refused.
MarkedCycles AfterARefusedUnregister() {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Call(CallId::MemHostRegister_v2).In(0, 0x7000).In(1, 0x1000).Stack(5).Cycle(1);
  trial.trace.Call(CallId::MemHostUnregister).In(0, 0x7000).Refused(CUDA_ERROR_INVALID_CONTEXT).Stack(6).Cycle(1);
  return trial.End(0).Begin();
}

// A cycle that makes a context, and was told that it could not end it.
MarkedCycles AfterADeniedDestroy() {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Call(CallId::CtxCreate_v2).Out(0, 0xc1).Context(0).Stack(5).Cycle(1);
  trial.trace.Call(CallId::CtxDestroy_v2).In(0, 0xc1).Context(0xc1).After(CUDA_ERROR_INVALID_CONTEXT).Stack(7).Cycle(1);
  return trial.End(CUDA_ERROR_INVALID_CONTEXT).Begin();
}

CUAUDIT_CASE(NotRecovered, WhatTheRefusedReleaseLeftIsInTheWay) {
  {
    const CaseRow row("registered already");
    MarkedCycles trial = AfterARefusedUnregister();
    trial.trace.Call(CallId::MemHostRegister_v2).In(0, 0x6000).Fails(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED).Stack(5).Cycle(2);
    ExpectSilence(trial.End(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED).Good());
  }
  {
    const CaseRow row("named");
    MarkedCycles trial = AfterARefusedUnregister();
    trial.trace.Call(CallId::MemHostUnregister).In(0, 0x7000).Fails(CUDA_ERROR_INVALID_VALUE).Stack(6).Cycle(2);
    ExpectSilence(trial.End(CUDA_ERROR_INVALID_VALUE).Good());
  }
  {
    const CaseRow row("no memory is left");
    MarkedCycles trial = AfterARefusedUnregister();
    trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_OUT_OF_MEMORY).Stack(1).Cycle(2);
    ExpectSilence(trial.End(CUDA_ERROR_OUT_OF_MEMORY).Good());
  }
  {
    const CaseRow row("the program knows");
    ExpectSilence(AfterARefusedUnregister().End(-1).Good());
  }
}

CUAUDIT_CASE(NotRecovered, WhatTheProgramBelievesToBeAliveIsGone) {
  {
    const CaseRow row("its context");
    MarkedCycles trial = AfterADeniedDestroy();
    trial.trace.Call(CallId::CtxSetCurrent).In(0, 0xc1).Fails(CUDA_ERROR_INVALID_CONTEXT).Stack(8).Cycle(2).Thread(kThread + 1);
    ExpectSilence(trial.End(CUDA_ERROR_INVALID_CONTEXT).Good());
  }
  {
    const CaseRow row("the current context");
    MarkedCycles trial = AfterADeniedDestroy();
    trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_INVALID_CONTEXT).Stack(1).Cycle(2);
    ExpectSilence(trial.End(CUDA_ERROR_INVALID_CONTEXT).Good());
  }
  {
    const CaseRow row("a second release is reported");
    MarkedCycles trial;
    trial.Begin();
    trial.trace.Alloc(0x5000).Stack(1).Cycle(1);
    trial.trace.Free(0x5000).After(CUDA_ERROR_INVALID_CONTEXT).Stack(2).Cycle(1);
    trial.End(CUDA_ERROR_INVALID_CONTEXT).Begin();
    trial.trace.Free(0x5000).Fails(CUDA_ERROR_INVALID_VALUE).Stack(3).Cycle(2);
    ExpectSilence(trial.End(CUDA_ERROR_INVALID_VALUE).Good());
  }
}

// The program leaves it to the end of its context to unregister memory or to disable peer access. That end was refused.
CUAUDIT_CASE(NotRecovered, WhatWouldHaveGoneWithTheContextIsThereAlready) {
  struct Row {
    const char* name;
    CallId call;
    std::uint64_t in;
    std::uint64_t current;
    CUresult already;
  };
  for (const Row& row : {Row{"host memory", CallId::MemHostRegister_v2, 0x7000, kContext, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED},
                         Row{"has access", CallId::CtxEnablePeerAccess, 0xc2, kContext, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED},
                         Row{"is the peer", CallId::CtxEnablePeerAccess, kContext, 0xc2, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED}}) {
    const CaseRow named(row.name);
    const auto cycles = [&row](bool faulted) {
      MarkedCycles all;
      for (const std::uint32_t cycle : {1U, 2U}) {
        all.Begin();
        all.trace.Retain().Stack(5).Cycle(cycle);
        Step acquire = all.trace.Call(row.call).In(0, row.in).In(1, 0x1000).Context(row.current).Stack(6).Cycle(cycle);
        if (faulted && cycle == 2) acquire.Fails(row.already);
        Step release = all.trace.ReleasePrimary().Stack(7).Cycle(cycle);
        if (faulted && cycle == 1) release.Refused(CUDA_ERROR_INVALID_CONTEXT);
        all.End(faulted && cycle == 2 ? row.already : CUDA_SUCCESS);
      }
      return all;
    };
    ExpectSilence(cycles(false), cycles(true), Recovery::Refused);
  }
}

CUAUDIT_CASE(NotRecovered, TheLostContextCouldNotBeEnded) {
  for (const bool primary : {false, true}) {
    const CaseRow row(primary ? "primary" : "its own");
    MarkedCycles trial;
    trial.Begin();
    primary ? trial.trace.Retain().Stack(5).Cycle(1) : trial.trace.Call(CallId::CtxCreate_v2).Out(0, 0xc1).Context(0).Stack(5).Cycle(1);
    Step end = primary ? trial.trace.ReleasePrimary() : trial.trace.Call(CallId::CtxDestroy_v2).In(0, 0xc1).Context(0xc1);
    end.Refused(CUDA_ERROR_ILLEGAL_ADDRESS).Stack(6).Cycle(1);
    trial.End(CUDA_ERROR_ILLEGAL_ADDRESS).Begin();
    trial.trace.Call(CallId::CtxSetCurrent).In(0, kContext).Stack(7).Cycle(2);
    trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_ILLEGAL_ADDRESS).Stack(1).Cycle(2);
    ExpectSilence(trial.End(CUDA_ERROR_ILLEGAL_ADDRESS).Good());
  }
}

// The thread pushes a context, pops it and is back where the denied pop had brought it.
CUAUDIT_CASE(NotRecovered, BackOnTheStackThatADeniedPopLeft) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Pop(kContext).After(CUDA_ERROR_INVALID_CONTEXT).Stack(4).Cycle(1);
  trial.End(CUDA_ERROR_INVALID_CONTEXT).Begin();
  trial.trace.Push(0xc2).Stack(5).Cycle(2);
  trial.trace.Pop(0xc2).Stack(6).Cycle(2);
  trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_INVALID_CONTEXT).Stack(1).Cycle(2);
  ExpectSilence(trial.End(CUDA_ERROR_INVALID_CONTEXT).Good());
}

// The program leaves its streams to the last release of the primary context. A reference is left, so the next ones do not end them.
CUAUDIT_CASE(NotRecovered, StreamsThatWouldHaveGoneWithTheContext) {
  const auto cycles = [](bool faulted) {
    MarkedCycles all;
    for (const std::uint32_t cycle : {1U, 2U, 3U}) {
      all.Begin();
      all.trace.Retain().Stack(5).Cycle(cycle);
      all.trace.CreateStream(0x10 + cycle).Stack(6).Cycle(cycle);
      Step release = all.trace.ReleasePrimary().Stack(7).Cycle(cycle);
      if (faulted && cycle == 1) release.Refused(CUDA_ERROR_INVALID_CONTEXT);
      all.End(0);
    }
    return all;
  };
  ExpectSilence(cycles(false), cycles(true), Recovery::Checked);
}

Judgement Judged(const MarkedCycles& trial) { return Judge(MarkedCycles().Good().Good().Good().trace, trial.trace, 0); }

CUAUDIT_CASE(Swallowed, ARetryThatSucceedsMayBeCalledSuccess) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Alloc(0x5000).Refused().Stack(1).Cycle(1);
  trial.trace.Alloc(0x5000).Stack(4).Cycle(1);
  trial.trace.Free(0x5000).Stack(2).Cycle(1);
  const Judgement judgement = Judged(trial.End(0).Good().Good());
  EXPECT_EQ(judgement.verdict, Verdict::Absorbed);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

CUAUDIT_CASE(Swallowed, ARefusedReleaseHasNobodyToTell) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Alloc(0x5000).Stack(1).Cycle(1);
  trial.trace.Free(0x5000).Refused(CUDA_ERROR_INVALID_CONTEXT).Stack(2).Cycle(1);
  const Judgement judgement = Judged(trial.End(0).Good().Good());
  EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused);
  EXPECT_THAT(judgement.findings, IsEmpty());
  EXPECT_EQ(judgement.recovery, Recovery::Checked) << "what is left did not disturb the next cycle";
}

CUAUDIT_CASE(Spurious, AFailureThatACallExplains) {
  MarkedCycles trial;
  trial.Good().Begin();
  trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_OUT_OF_MEMORY).Cycle(2);
  EXPECT_THAT(Judge(trial.End(CUDA_ERROR_OUT_OF_MEMORY).trace).findings, IsEmpty());
}

CUAUDIT_CASE(WrongCode, TheCodeOfAnyCallThatFailedIsRight) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Alloc(0x5000).Refused().Stack(1).Cycle(1);
  trial.trace.Call(driver::CallId::StreamSynchronize).Fails(CUDA_ERROR_INVALID_HANDLE).Cycle(1);  // what came of it
  EXPECT_EQ(Judged(trial.End(CUDA_ERROR_INVALID_HANDLE).Good().Good()).verdict, Verdict::Pass);
}

CUAUDIT_CASE(WrongCode, AFailureWithoutACodeNamesNone) {
  const Judgement judgement = Judged(MarkedCycles().Failed(-1).Good().Good());
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

CUAUDIT_CASE(OutputWritten, OutputBelongsToSuccess) {
  MarkedCycles trial;
  trial.Failed(CUDA_ERROR_OUT_OF_MEMORY).Begin();
  trial.trace.Say(MarkKind::Output, 1).Cycle(2);
  EXPECT_THAT(Judged(trial.End(0).Good()).findings, IsEmpty());
}

CUAUDIT_CASE(NotRecovered, ACacheThatComesOneCycleLater) {
  MarkedCycles rehearsal;
  rehearsal.Begin();
  rehearsal.trace.CreateStream(0x10).Stack(5).Cycle(1);
  rehearsal.End(0).Good().Good();
  MarkedCycles trial;
  trial.Failed(CUDA_ERROR_OUT_OF_MEMORY).Begin();
  trial.trace.CreateStream(0x10).Stack(5).Cycle(2);
  trial.End(0).Good();
  const Judgement judgement = Judge(rehearsal.trace, trial.trace);
  EXPECT_EQ(judgement.recovery, Recovery::Checked);
  EXPECT_EQ(judgement.verdict, Verdict::Pass) << Name(judgement.verdict);
}

CUAUDIT_CASE(NotRecovered, ASecondReleaseOfWhatWasToldToBeAliveMustFail) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Alloc(0x5000).Stack(1).Cycle(1);
  trial.trace.Free(0x5000).After(CUDA_ERROR_INVALID_CONTEXT).Stack(2).Cycle(1);
  trial.End(CUDA_ERROR_INVALID_CONTEXT).Begin();
  trial.trace.Free(0x5000).Fails(CUDA_ERROR_INVALID_VALUE).Stack(3).Cycle(2);
  const Judgement judgement = Judged(trial.End(0).Good());
  EXPECT_EQ(judgement.recovery, Recovery::Checked);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

// The plan left another context current than the program believes, and the next cycle needs that one.
CUAUDIT_CASE(NotRecovered, TheContextWasTakenOffUnderAfter) {
  for (const CallId call : {CallId::CtxSetCurrent, CallId::CtxPopCurrent_v2}) {
    const CaseRow row(driver::Name(driver::BaseOf(call)));
    MarkedCycles trial;
    trial.Begin();
    trial.trace.Call(call).In(0, 0).After(CUDA_ERROR_INVALID_CONTEXT).Stack(4).Cycle(1);
    trial.End(CUDA_ERROR_INVALID_CONTEXT).Begin();
    trial.trace.Alloc(0x9000).Stack(1).Cycle(2).Fails(CUDA_ERROR_INVALID_CONTEXT);
    const Judgement judgement = Judged(trial.End(CUDA_ERROR_INVALID_CONTEXT).Good());
    EXPECT_EQ(judgement.recovery, Recovery::Refused);
    EXPECT_THAT(judgement.findings, IsEmpty());
  }
}

CUAUDIT_CASE(RetainedForRetry, AReleaseThatSucceedsAtOnceIsNone) {
  const Judgement judgement = Judged(MarkedCycles().Failed(CUDA_ERROR_OUT_OF_MEMORY).Good().Good());
  EXPECT_EQ(judgement.verdict, Verdict::Pass);
  EXPECT_THAT(judgement.notes, IsEmpty());
}

CUAUDIT_CASE(BenignFailed, AnOptionalFeatureIsLeftOut) {
  for (const char* const declaration : {"cuMemPoolCreate", "cuMemPoolCreate@make_pool"}) {
    const harness::TrialResult trial = Declared(declaration, harness::Said::Success);
    EXPECT_EQ(trial.verdict, harness::Verdict::Benign);
    EXPECT_THAT(trial.findings, IsEmpty());
  }
}

CUAUDIT_CASE(BenignFailed, AFailureAtACallThatIsNotDeclared) {
  const harness::TrialResult trial = Declared("cuMemPoolCreate@somewhere_else", harness::Said::Failure);
  EXPECT_EQ(trial.verdict, harness::Verdict::Pass);
  EXPECT_THAT(trial.findings, IsEmpty());
}

CUAUDIT_CASE(BenignNeverFired, EveryDeclarationWasHit) {
  EXPECT_THAT(NeverHit({"cuMemPoolCreate", "cuMemAlloc"}, {"cuMemAlloc", "cuMemPoolCreate"}), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::recovery_test
