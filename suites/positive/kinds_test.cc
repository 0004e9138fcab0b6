// SPDX-License-Identifier: MIT
// Every kind of resource treated right, kind by kind: the neighbours of suites/planted/leak_test.cc.
#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::kinds_test {
namespace {

using harness::Judgement;
using harness::Verdict;
using ::testing::IsEmpty;

CUAUDIT_CASE(Orphaned, EveryKindReleasedBeforeItsContext) {
  for (const KindCase& c : KindCases()) {
    if (driver::DiesWithOf(c.kind) != driver::DiesWith::Context) continue;
    const CaseRow row(c.kind);
    Trace t;
    t.Retain();
    c.acquire(t);
    c.release(t);
    t.ReleasePrimary();
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(DoubleRelease, EveryKindMadeAgainAtTheSameHandle) {
  for (const KindCase& c : KindCases()) {
    const CaseRow row(c.kind);
    Trace t;
    for (int i = 0; i < 3; ++i) {
      c.acquire(t);
      c.release(t);
    }
    ExpectSilent(t);
  }
}

CUAUDIT_CASE(UseAfterRelease, EveryKindUsedWhileItLives) {
  for (const Use& use : Uses()) {
    const CaseRow row(use.one->kind);
    Trace t;
    use.one->acquire(t);
    use.Make(t);
    use.one->release(t);
    use.one->acquire(t);  // the handle comes back
    use.Make(t);
    use.one->release(t);
    ExpectSilent(t);
  }
}

// An unrelated stream is refused, and the program unwinds what it had.
CUAUDIT_CASE(Leak, EveryKindUnwoundAfterARefusal) {
  for (const KindCase& c : KindCases()) {
    const CaseRow row(c.kind);
    Trace rehearsal;
    c.acquire(rehearsal);
    rehearsal.CreateStream(0x51);
    rehearsal.DestroyStream(0x51);
    c.release(rehearsal);
    Trace trial;
    c.acquire(trial);
    trial.CreateStream(0).Refused();
    c.release(trial);
    const Judgement judgement = Judge(rehearsal, trial);
    EXPECT_EQ(judgement.verdict, Verdict::Pass) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
    EXPECT_THAT(judgement.notes, IsEmpty());
  }
}

// `after`: the object is gone and the program was told that it is not; it tries once more, and goes on when that fails.
CUAUDIT_CASE(DoubleRelease, EveryKindWhoseReleaseWasSaidToHaveFailed) {
  for (const KindCase& c : KindCases()) {
    if (IsHostKind(c.kind)) continue;
    const CaseRow row(c.kind);
    Trace t;
    c.acquire(t);
    c.release(t);
    t.Last().After(CUDA_ERROR_LAUNCH_FAILED);
    c.release(t);
    t.Last().Fails(CUDA_ERROR_INVALID_VALUE);
    ExpectSilent(t);
  }
}

// Its handle is another object's by then. One of the two releases that follow takes that object, and the driver declines the other; or the
// retry takes it, and the program goes on to use it.
Judgement JudgeBesideOne(const KindCase& c, const Trace& trial) {
  Trace rehearsal;
  c.acquire(rehearsal);
  c.release(rehearsal);
  return Judge(rehearsal, trial);
}

void ExpectCouldNotKnow(const KindCase& c, const Trace& trial) {
  const Judgement judgement = JudgeBesideOne(c, trial);
  EXPECT_EQ(judgement.verdict, Verdict::Pass) << Name(judgement.verdict);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, harness::Rule::CouldNotKnow);
}

// `later`: how often another object has the handle and the program tries again. Where it tries, it has released nothing before, or a retry
// of a release that was `refused`.
Trace RetriesLater(const KindCase& c, int told, int later = 1, bool refused = false) {
  Trace t;
  for (int i = 0; i < told; ++i) {
    c.acquire(t);
    if (refused) {
      c.release(t);
      t.Last().Refused(CUDA_ERROR_LAUNCH_FAILED).Stack(1);
    }
    c.release(t);
    t.Last().After(CUDA_ERROR_LAUNCH_FAILED).Stack(refused ? 2 : 1);
  }
  for (int another = 0; another < later; ++another) {
    c.acquire(t);
    c.release(t);
    t.Last().Stack(1);
    for (int i = 0; i < told + 1; ++i) {
      c.release(t);
      t.Last().Fails(CUDA_ERROR_INVALID_VALUE).Stack(later == 1 ? 1 : 2);
    }
  }
  return t;
}

CUAUDIT_CASE(DoubleRelease, EveryKindWhoseRetryMeetsANewObject) {
  for (const KindCase& c : KindCases()) {
    if (IsHostKind(c.kind) || c.kind == driver::Kind::ContextStackEntry || c.kind == driver::Kind::UserObject) continue;
    if (c.kind == driver::Kind::PrimaryContext) continue;  // has a rule of its own
    const CaseRow row(c.kind);
    for (const int told : {1, 2}) ExpectCouldNotKnow(c, RetriesLater(c, told));
    ExpectCouldNotKnow(c, RetriesLater(c, 1, 3));
    EXPECT_THAT(JudgeBesideOne(c, RetriesLater(c, 1, 3, true)).findings, IsEmpty());
  }
}

CUAUDIT_CASE(OverReleasedPrimary, ARetryAfterAnotherPartHasReleased) {
  for (const KindCase& c : KindCases()) {
    if (c.kind != driver::Kind::PrimaryContext) continue;
    for (const int later : {1, 3}) ExpectCouldNotKnow(c, RetriesLater(c, 1, later));
    EXPECT_THAT(JudgeBesideOne(c, RetriesLater(c, 1, 3, true)).findings, IsEmpty());
  }
}

CUAUDIT_CASE(UseAfterRelease, EveryKindThatARetryTook) {
  for (const Use& use : Uses()) {
    const CaseRow row(use.one->kind);
    Trace t;
    use.one->acquire(t);
    use.one->release(t);
    t.Last().After(CUDA_ERROR_LAUNCH_FAILED);
    use.one->acquire(t);
    use.one->release(t);
    use.Make(t);
    ExpectCouldNotKnow(*use.one, t);
  }
}

}  // namespace
}  // namespace cuaudit::testing::kinds_test
