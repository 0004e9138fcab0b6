// SPDX-License-Identifier: MIT
// Whether the program works again after an error: a release was refused or denied, and the next cycle fails over something else. What the
// program says of its errors, and declarations that do not hold: what is declared benign is not absorbed, or never hit.
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"
#include "suites/support/journal_image.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::recovery_test {
namespace {

using driver::CallId;
using driver::Kind;
using harness::Judgement;
using harness::Recovery;
using harness::Rule;
using harness::Verdict;
using ::testing::HasSubstr;
using ::testing::SizeIs;

void ExpectOnly(const Judgement& judgement, Verdict verdict, Rule rule, const char* detail) {
  EXPECT_EQ(judgement.verdict, verdict) << Name(judgement.verdict);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, rule) << Name(judgement.findings[0].rule);
  EXPECT_THAT(Words(judgement.findings[0].detail), HasSubstr(detail));
}

void ExpectNotRecovered(const MarkedCycles& rehearsal, const MarkedCycles& trial, const char* detail) {
  ExpectOnly(Judge(rehearsal.trace, trial.trace, 0), Verdict::NotRecovered, Rule::NotRecovered, detail);
}

void ExpectNotRecovered(const MarkedCycles& trial, const char* detail) {
  ExpectNotRecovered(MarkedCycles().Good().Good().Good(), trial, detail);
}

// The end of a cycle in which a release was refused, and the begin of the next one.
MarkedCycles AfterARefusedFree() {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Alloc(0x5000).Stack(1).Cycle(1);
  trial.trace.Free(0x5000).Refused(CUDA_ERROR_INVALID_CONTEXT).Stack(2).Cycle(1);
  return trial.End(0).Begin();
}

// The same, with a stream that was destroyed although the program was told otherwise.
MarkedCycles AfterADeniedDestroy() {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.CreateStream(0x10).Stack(5).Cycle(1);
  trial.trace.DestroyStream(0x10).After(CUDA_ERROR_INVALID_CONTEXT).Stack(6).Cycle(1);
  return trial.End(CUDA_ERROR_INVALID_CONTEXT).Begin();
}

MarkedCycles AfterADeniedPop() {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Call(CallId::CtxPopCurrent_v2).After(CUDA_ERROR_INVALID_CONTEXT).Stack(4).Cycle(1);
  return trial.End(CUDA_ERROR_INVALID_CONTEXT).Begin();
}

CUAUDIT_CASE(NotRecovered, AnotherCallFailsAfterARefusedRelease) {
  MarkedCycles trial = AfterARefusedFree();
  trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_INVALID_VALUE).Stack(1).Cycle(2);
  ExpectNotRecovered(trial.End(CUDA_ERROR_INVALID_VALUE).Good(), "INVALID_VALUE");
}

// Only a context that could not be ended explains that a context is lost.
CUAUDIT_CASE(NotRecovered, AContextIsLostAfterARefusedRelease) {
  MarkedCycles trial = AfterARefusedFree();
  trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_ILLEGAL_ADDRESS).Stack(1).Cycle(2);
  ExpectNotRecovered(trial.End(CUDA_ERROR_ILLEGAL_ADDRESS).Good(), "ILLEGAL_ADDRESS");
}

// What is there already is not what the refused release left.
CUAUDIT_CASE(NotRecovered, SomethingElseIsThereAlready) {
  for (const bool peer : {false, true}) {
    const CaseRow row(peer ? "peer access" : "host memory");
    MarkedCycles trial;
    trial.Begin();
    trial.trace.Call(CallId::EventCreate).Out(0, 0xe1).Stack(5).Cycle(1);
    trial.trace.Call(CallId::EventDestroy_v2).In(0, 0xe1).Refused(CUDA_ERROR_INVALID_CONTEXT).Stack(6).Cycle(1);
    trial.End(0).Begin();
    const CUresult already = peer ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    trial.trace.Call(peer ? CallId::CtxEnablePeerAccess : CallId::MemHostRegister_v2).In(0, 0x6000).Fails(already).Stack(7).Cycle(2);
    ExpectNotRecovered(trial.End(already).Good(), "ALREADY");
  }
}

// A context was kept, but the memory was registered since.
CUAUDIT_CASE(NotRecovered, RegisteredTwiceInAContextThatIsKept) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Retain().Stack(5).Cycle(1);
  trial.trace.ReleasePrimary().Refused(CUDA_ERROR_INVALID_CONTEXT).Stack(6).Cycle(1);
  trial.End(0).Begin();
  trial.trace.Call(CallId::MemHostRegister_v2).In(0, 0x7000).In(1, 0x1000).Context(kContext).Stack(7).Cycle(2);
  trial.trace.Call(CallId::MemHostRegister_v2).In(0, 0x6000).Fails(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED).Stack(8).Cycle(2);
  trial.trace.Call(CallId::MemHostUnregister).In(0, 0x7000).Context(kContext).Stack(9).Cycle(2);
  ExpectNotRecovered(trial.End(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED).Good(), "ALREADY_REGISTERED");
}

CUAUDIT_CASE(NotRecovered, AnotherObjectStaysAfterARefusedRelease) {
  MarkedCycles trial = AfterARefusedFree();
  trial.trace.Alloc(0x9000).Stack(1).Cycle(2);
  trial.End(0);
  trial.trace.Free(0x9000).Stack(2).Cycle(2);  // given back, but after the end
  ExpectNotRecovered(trial, "left it");
}

CUAUDIT_CASE(NotRecovered, AnObjectStaysInTheContextOfTheRefusedRelease) {
  MarkedCycles trial;
  trial.Begin();
  trial.trace.Retain().Stack(5).Cycle(1);
  trial.trace.ReleasePrimary().Refused(CUDA_ERROR_INVALID_CONTEXT).Stack(6).Cycle(1);
  trial.End(0).Begin();
  trial.trace.Alloc(0x9000).Stack(1).Cycle(2);
  trial.End(0);
  trial.trace.Free(0x9000).Stack(2).Cycle(2);  // the fault-free run frees it before the end
  ExpectNotRecovered(trial, "left it");
}

CUAUDIT_CASE(NotRecovered, AnotherReleaseFailsAfterADeniedOne) {
  MarkedCycles trial = AfterADeniedDestroy();
  trial.trace.CreateStream(0x11).Stack(5).Cycle(2);
  trial.trace.DestroyStream(0x11).Fails(CUDA_ERROR_INVALID_VALUE).Stack(6).Cycle(2);
  trial.trace.DestroyStream(0x11).Stack(7).Cycle(2);
  ExpectNotRecovered(trial.End(0).Good(), "INVALID_VALUE");
}

CUAUDIT_CASE(NotRecovered, ANewObjectHasTheHandleOfTheDeniedRelease) {
  MarkedCycles trial = AfterADeniedDestroy();
  trial.trace.CreateStream(0x10).Stack(5).Cycle(2);
  trial.trace.Call(CallId::StreamSynchronize).In(0, 0x10).Fails(CUDA_ERROR_INVALID_VALUE).Stack(7).Cycle(2);
  trial.trace.DestroyStream(0x10).Stack(6).Cycle(2);
  ExpectNotRecovered(trial.End(CUDA_ERROR_INVALID_VALUE).Good(), "INVALID_VALUE");
}

CUAUDIT_CASE(NotRecovered, TheThreadHasChosenItsContextSince) {
  MarkedCycles trial = AfterADeniedPop();
  trial.trace.Call(CallId::CtxSetCurrent).In(0, kContext).Stack(5).Cycle(2);
  trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_INVALID_CONTEXT).Stack(1).Cycle(2);
  ExpectNotRecovered(trial.End(CUDA_ERROR_INVALID_CONTEXT).Good(), "INVALID_CONTEXT");
}

// The context is not current when it is destroyed, so the thread stays where it is.
CUAUDIT_CASE(NotRecovered, AnotherCallFailsAfterTheEndOfAContextThatIsNotCurrent) {
  for (const bool refused : {false, true}) {
    const CaseRow row(refused ? "refused" : "denied");
    MarkedCycles trial;
    trial.Begin();
    trial.trace.Call(CallId::CtxCreate_v2).Out(0, 0xc1).Context(kContext).Stack(5).Cycle(1);
    trial.trace.Pop(0xc1).Stack(6).Cycle(1);
    Step destroy = trial.trace.Call(CallId::CtxDestroy_v2).In(0, 0xc1).Context(kContext).Stack(7).Cycle(1);
    refused ? destroy.Refused(CUDA_ERROR_INVALID_CONTEXT) : destroy.After(CUDA_ERROR_INVALID_CONTEXT);
    trial.End(CUDA_ERROR_INVALID_CONTEXT).Begin();
    trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_INVALID_VALUE).Stack(1).Cycle(2);
    ExpectNotRecovered(trial.End(CUDA_ERROR_INVALID_VALUE).Good(), "INVALID_VALUE");
  }
}

CUAUDIT_CASE(NotRecovered, AThreadFailsWhoseContextStackNobodyChanged) {
  MarkedCycles trial = AfterADeniedPop();
  trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_INVALID_CONTEXT).Thread(kThread + 1).Stack(1).Cycle(2);
  ExpectNotRecovered(trial.End(CUDA_ERROR_INVALID_CONTEXT).Good(), "INVALID_CONTEXT");
}

// A cycle that ends a registration after its context, as every cycle does, and so is told that it cannot.
void ReleaseTooLate(MarkedCycles* cycles, bool fails) {
  cycles->Begin();
  Trace& t = cycles->trace;
  const std::uint32_t cycle = cycles->cycle();
  t.Retain().Stack(5).Cycle(cycle);
  t.Call(CallId::MemHostRegister_v2).In(0, 0x7000).In(1, 0x1000).Stack(6).Cycle(cycle);
  Step event = t.Call(CallId::EventCreate).Out(0, 0x30).Stack(1).Cycle(cycle);
  if (fails) event.Refused();
  if (!fails) t.Call(CallId::EventDestroy_v2).In(0, 0x30).Stack(2).Cycle(cycle);
  t.ReleasePrimary().Stack(7).Cycle(cycle);
  t.Call(CallId::MemHostUnregister).In(0, 0x7000).Fails(CUDA_ERROR_INVALID_CONTEXT).Stack(8).Cycle(cycle);
}

CUAUDIT_CASE(NotRecovered, AReleaseFailsAgainThatCameTooLate) {
  MarkedCycles rehearsal;
  MarkedCycles trial;
  for (int cycle = 1; cycle <= 3; ++cycle) {
    ReleaseTooLate(&rehearsal, false);
    rehearsal.End(0);
    ReleaseTooLate(&trial, cycle == 1);
    if (cycle == 2) trial.trace.Call(CallId::MemHostUnregister).In(0, 0x7000).Fails(CUDA_ERROR_INVALID_CONTEXT).Stack(9).Cycle(2);
    trial.End(cycle == 1 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
  }
  ExpectNotRecovered(rehearsal, trial, "INVALID_CONTEXT");
}

Judgement Judged(const MarkedCycles& trial, const harness::JudgeOptions& options = {}) {
  return Judge(MarkedCycles().Good().Good().Good().trace, trial.trace, 0, options);
}

CUAUDIT_CASE(Swallowed, SuccessWasSaidAfterARefusedAllocation) {
  const Judgement judgement = Judged(MarkedCycles().Failed(0).Good().Good());
  ExpectOnly(judgement, Verdict::Misreported, Rule::Swallowed, "");
  EXPECT_EQ(judgement.findings[0].where.call, static_cast<std::uint16_t>(CallId::MemAlloc_v2));
}

CUAUDIT_CASE(Swallowed, AnExitStatusOfSuccessIsAPromiseWhenAskedFor) {
  Trace rehearsal;
  rehearsal.Alloc(0x1000);
  rehearsal.Free(0x1000);
  Trace trial;
  trial.Alloc(0x1000).Refused();
  trial.CreateStream(0x10);
  trial.DestroyStream(0x10);
  const JournalImage before(rehearsal);
  const JournalImage after(trial);
  harness::JudgeOptions strict = {.exit_is_said = true};
  ExpectOnly(Judge(before.Evidence(), after.Evidence(0), true, strict), Verdict::Misreported, Rule::Swallowed, "");
  EXPECT_EQ(Judge(before.Evidence(), after.Evidence(0), true, {}).verdict, Verdict::Absorbed) << "unless asked, a note";
}

CUAUDIT_CASE(Spurious, AFailureWithoutAFailedCall) {
  const Judgement judgement = Judge(MarkedCycles().Good().Begin().End(CUDA_ERROR_UNKNOWN).trace);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Spurious);
  EXPECT_EQ(Words(judgement.findings[0].detail), "it reported UNKNOWN in cycle 2");
}

CUAUDIT_CASE(WrongCode, NoCallAnsweredWhatWasReported) {
  ExpectOnly(Judged(MarkedCycles().Failed(CUDA_ERROR_INVALID_VALUE).Good().Good()), Verdict::Misreported, Rule::WrongCode,
             "it reported INVALID_VALUE");
}

CUAUDIT_CASE(OutputWritten, AFailureThatLeavesItsOutput) {
  ExpectOnly(Judged(MarkedCycles().Failed(CUDA_ERROR_OUT_OF_MEMORY, true).Good().Good()), Verdict::Misreported, Rule::OutputWritten, "");
}

CUAUDIT_CASE(NotRecovered, TheNextCycleReportsAFailure) {
  const Judgement judgement = Judged(MarkedCycles().Failed(CUDA_ERROR_OUT_OF_MEMORY).Begin().End(-1).Good());
  ExpectOnly(judgement, Verdict::NotRecovered, Rule::NotRecovered, "the clean cycle reported -1");
  EXPECT_EQ(judgement.recovery, Recovery::Checked);
}

CUAUDIT_CASE(NotRecovered, ACallFailsInTheNextCycle) {
  MarkedCycles trial;
  trial.Failed(CUDA_ERROR_OUT_OF_MEMORY).Begin();
  trial.trace.Alloc(0x9000).Stack(1).Cycle(2).Fails(CUDA_ERROR_INVALID_CONTEXT);
  trial.End(CUDA_ERROR_INVALID_CONTEXT);
  ExpectOnly(Judged(trial), Verdict::NotRecovered, Rule::NotRecovered, "INVALID_CONTEXT");
}

CUAUDIT_CASE(NotRecovered, TheNextCycleNeverEnds) {
  MarkedCycles trial;
  trial.Failed(CUDA_ERROR_OUT_OF_MEMORY).Begin();
  ExpectOnly(Judged(trial), Verdict::NotRecovered, Rule::NotRecovered, "did not end");
}

CUAUDIT_CASE(NotRecovered, TheNextCycleHoldsMoreWhenItEnds) {
  MarkedCycles trial;
  trial.Failed(CUDA_ERROR_OUT_OF_MEMORY).Begin();
  trial.trace.Alloc(0x9000).Stack(1).Cycle(2);
  trial.End(0);
  trial.trace.Free(0x9000).Stack(2).Cycle(2);  // given back, but after the end
  ExpectOnly(Judged(trial), Verdict::NotRecovered, Rule::NotRecovered, "left it");
}

CUAUDIT_CASE(RetainedForRetry, TheSecondReleaseSucceeds) {
  Trace rehearsal;
  rehearsal.CreateStream(0x10).Stack(1);
  rehearsal.DestroyStream(0x10).Stack(2);
  Trace trial;
  trial.CreateStream(0x10).Stack(1);
  trial.DestroyStream(0x10).Refused().Stack(2);
  trial.DestroyStream(0x10).Stack(3);
  const Judgement judgement = Judge(rehearsal, trial);
  EXPECT_EQ(judgement.verdict, Verdict::RetainedForRetry);
  EXPECT_TRUE(judgement.findings.empty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::RetainedForRetry);
  EXPECT_EQ(judgement.notes[0].kind, Kind::Stream);
}

CUAUDIT_CASE(BenignFailed, TheProgramFailsAllTheSame) {
  const harness::TrialResult trial = Declared("cuMemPoolCreate", harness::Said::Failure);
  EXPECT_EQ(trial.verdict, harness::Verdict::Misreported);
  ASSERT_THAT(trial.findings, SizeIs(1));
  EXPECT_EQ(trial.findings[0].detail, "cuMemPoolCreate");
  EXPECT_EQ(trial.findings[0].where->call, "cuMemPoolCreate");
}

CUAUDIT_CASE(BenignFailed, DeclaredForTheFunctionThatCallsIt) {
  const harness::TrialResult trial = Declared("cuMemPoolCreate@make_pool", harness::Said::Failure);
  EXPECT_THAT(trial.findings, SizeIs(1));
}

CUAUDIT_CASE(BenignNeverFired, NoFaultHitTheDeclaredCall) {
  EXPECT_THAT(NeverHit({"cuMemPoolCreate", "cuMemAlloc"}, {"cuMemAlloc"}), SizeIs(1));
}

CUAUDIT_CASE(BenignNeverFired, ATrialThatMissedHitsNothing) {
  EXPECT_THAT(NeverHit({"cuMemPoolCreate"}, {"cuMemPoolCreate"}, false), SizeIs(1));
}

}  // namespace
}  // namespace cuaudit::testing::recovery_test
