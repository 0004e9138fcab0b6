// SPDX-License-Identifier: MIT
// What the program says of its errors, whether it works again after one, and declarations that do not hold: what is declared benign is not
// absorbed, or never hit.
#include "suites/support/cases/case.h"
#include "suites/support/cases/traces.h"
#include "suites/support/journal_image.h"
#include "suites/support/trace.h"

namespace cuaudit::testing::said_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::MarkKind;
using harness::Judgement;
using harness::Recovery;
using harness::Rule;
using harness::Verdict;
using ::testing::HasSubstr;

Judgement Judged(const MarkedCycles& trial, const harness::JudgeOptions& options = {}) {
  const JournalImage before(MarkedCycles().Good().Good().Good().trace);
  const JournalImage after(trial.trace);
  return Judge(before.Evidence(), after.Evidence(0), true, options);
}

void ExpectOnly(const Judgement& judgement, Verdict verdict, Rule rule, const char* detail) {
  EXPECT_EQ(judgement.verdict, verdict) << Name(judgement.verdict);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, rule) << Name(judgement.findings[0].rule);
  EXPECT_THAT(Words(judgement.findings[0].detail), HasSubstr(detail));
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
  harness::JudgeOptions strict;
  strict.exit_is_said = true;
  ExpectOnly(Judge(before.Evidence(), after.Evidence(0), true, strict), Verdict::Misreported, Rule::Swallowed, "");
  EXPECT_EQ(Judge(before.Evidence(), after.Evidence(0), true, {}).verdict, Verdict::Absorbed) << "unless asked, a note";
}

CUAUDIT_CASE(Spurious, AFailureWithoutAFailedCall) {
  const JournalImage run(MarkedCycles().Good().Begin().End(CUDA_ERROR_UNKNOWN).trace);
  const Judgement judgement = Judge({}, run.Evidence(), false, {});
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
  const JournalImage before(rehearsal);
  const JournalImage after(trial);
  const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
  EXPECT_EQ(judgement.verdict, Verdict::RetainedForRetry);
  EXPECT_TRUE(judgement.findings.empty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::RetainedForRetry);
  EXPECT_EQ(judgement.notes[0].kind, Kind::Stream);
}

using ::testing::SizeIs;

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
}  // namespace cuaudit::testing::said_test
