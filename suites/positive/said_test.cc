// SPDX-License-Identifier: MIT
// Programs that say what happened, work again afterwards, or go on without an optional feature that is declared benign: not a word about
// them.
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"
#include "suites/support/journal_image.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::said_test {
namespace {

using driver::CallId;
using faults::MarkKind;
using harness::Judgement;
using harness::Recovery;
using harness::Rule;
using harness::Verdict;
using ::testing::IsEmpty;

Judgement Judged(const MarkedCycles& trial) {
  const JournalImage before(MarkedCycles().Good().Good().Good().trace);
  const JournalImage after(trial.trace);
  return Judge(before.Evidence(), after.Evidence(0), true, {});
}

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
  const JournalImage run(trial.End(CUDA_ERROR_OUT_OF_MEMORY).trace);
  EXPECT_THAT(Judge({}, run.Evidence(), false, {}).findings, IsEmpty());
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
  const JournalImage before(rehearsal.trace);
  const JournalImage after(trial.trace);
  const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
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
}  // namespace cuaudit::testing::said_test
