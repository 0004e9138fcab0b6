// SPDX-License-Identifier: MIT
// A release was refused or denied, and the next cycle fails over something else.
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"
#include "suites/support/journal_image.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::recovery_test {
namespace {

using driver::CallId;
using harness::Judgement;
using harness::Rule;
using harness::Verdict;
using ::testing::HasSubstr;

void ExpectNotRecovered(const MarkedCycles& trial, const char* detail) {
  const JournalImage before(MarkedCycles().Good().Good().Good().trace);
  const JournalImage after(trial.trace);
  const Judgement judgement = Judge(before.Evidence(), after.Evidence(0), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::NotRecovered) << Name(judgement.verdict);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::NotRecovered) << Name(judgement.findings[0].rule);
  EXPECT_THAT(Words(judgement.findings[0].detail), HasSubstr(detail));
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

CUAUDIT_CASE(NotRecovered, AThreadFailsWhoseContextStackNobodyChanged) {
  MarkedCycles trial = AfterADeniedPop();
  trial.trace.Alloc(0x9000).Fails(CUDA_ERROR_INVALID_CONTEXT).Thread(kThread + 1).Stack(1).Cycle(2);
  ExpectNotRecovered(trial.End(CUDA_ERROR_INVALID_CONTEXT).Good(), "INVALID_CONTEXT");
}

}  // namespace
}  // namespace cuaudit::testing::recovery_test
