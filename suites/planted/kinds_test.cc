// SPDX-License-Identifier: MIT
// Rules that hold for every kind of resource, kind by kind: orphaned, used after release, its release refused, retried.
#include "harness/ledger/arguments.h"
#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"
#include "suites/support/cases/uses.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::kinds_test {
namespace {

using driver::Kind;
using harness::Judgement;
using harness::Rule;
using harness::Verdict;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

CUAUDIT_CASE(Orphaned, EveryKindThatDiesWithItsContext) {
  for (const KindCase& c : KindCases()) {
    if (driver::DiesWithOf(c.kind) != driver::DiesWith::Context) continue;
    const CaseRow row(c.kind);
    Trace t;
    t.Retain();
    c.acquire(t);
    t.ReleasePrimary();
    EXPECT_THAT(Left(t.Fold()), ElementsAre(std::string(driver::Name(c.kind)) + " 1 orphaned"));
  }
}

CUAUDIT_CASE(UseAfterRelease, EveryKindThatACallUses) {
  for (const Use& use : Uses()) {
    const CaseRow row(use.one->kind);
    Trace t;
    use.one->acquire(t);
    use.one->release(t);
    use.Make(t);
    EXPECT_THAT(Wrong(t.Fold()), Contains("use_after_release " + std::string(driver::Name(use.one->kind)))) << driver::Name(use.call);
  }
}

Judgement JudgeRelease(const KindCase& c, bool retried) {
  Trace rehearsal;
  c.acquire(rehearsal);
  c.release(rehearsal);
  Trace trial;
  c.acquire(trial);
  c.release(trial);
  trial.Last().Refused(CUDA_ERROR_INVALID_CONTEXT);
  if (retried) c.release(trial);
  trial.CreateStream(0x51);  // it went on
  trial.DestroyStream(0x51);
  const JournalImage before(rehearsal);
  const JournalImage after(trial);
  return Judge(before.Evidence(), after.Evidence(1), true, {});
}

CUAUDIT_CASE(ReleaseRefused, EveryKindThatTheDriverReleases) {
  for (const KindCase& c : KindCases()) {
    if (IsHostKind(c.kind)) continue;
    const CaseRow row(c.kind);
    const Judgement judgement = JudgeRelease(c, false);
    EXPECT_EQ(judgement.verdict, Verdict::ReleaseRefused) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_EQ(judgement.notes.size(), 1U);
    EXPECT_EQ(judgement.notes[0].kind, c.kind);
  }
}

CUAUDIT_CASE(RetainedForRetry, EveryKindThatTheDriverReleases) {
  for (const KindCase& c : KindCases()) {
    if (IsHostKind(c.kind)) continue;
    const CaseRow row(c.kind);
    const Judgement judgement = JudgeRelease(c, true);
    EXPECT_EQ(judgement.verdict, Verdict::RetainedForRetry) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_EQ(judgement.notes.size(), 1U);
    EXPECT_EQ(judgement.notes[0].kind, c.kind);
  }
}

CUAUDIT_CASE(ProcessLifetime, EveryKindThatTheRehearsalLeavesToo) {
  for (const KindCase& c : KindCases()) {
    if (!IsLeakKind(c.kind)) continue;
    const CaseRow row(c.kind);
    Trace rehearsal;
    c.acquire(rehearsal);
    rehearsal.CreateStream(0x51).Stack(7);
    rehearsal.DestroyStream(0x51);
    Trace trial;
    c.acquire(trial);
    trial.CreateStream(0).Stack(7).Refused();
    trial.CreateStream(0x52).Stack(8);
    trial.DestroyStream(0x52);
    const JournalImage before(rehearsal);
    const JournalImage after(trial);
    const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
    EXPECT_EQ(judgement.verdict, Verdict::Pass) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_EQ(judgement.notes.size(), 1U);
    EXPECT_EQ(judgement.notes[0].rule, Rule::ProcessLifetime);
    EXPECT_EQ(judgement.notes[0].kind, c.kind);
  }
}

CUAUDIT_CASE(AbandonedAtExit, EveryKindHeldWhenItLeft) {
  for (const KindCase& c : KindCases()) {
    const CaseRow row(c.kind);
    Trace rehearsal;
    c.acquire(rehearsal);
    rehearsal.CreateStream(0x51);
    rehearsal.DestroyStream(0x51);
    c.release(rehearsal);
    rehearsal.Event(faults::ProcessEvent::Exit);
    Trace trial;
    c.acquire(trial);
    trial.CreateStream(0).Refused();
    trial.Event(faults::ProcessEvent::Exit);
    const JournalImage before(rehearsal);
    const JournalImage after(trial);
    const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
    EXPECT_EQ(judgement.verdict, Verdict::AbandonedAtExit) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
    ASSERT_EQ(judgement.notes.size(), 1U);
    EXPECT_EQ(judgement.notes[0].kind, c.kind);
  }
}

}  // namespace
}  // namespace cuaudit::testing::kinds_test
