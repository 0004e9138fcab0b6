// SPDX-License-Identifier: MIT
// Every kind of resource treated right, kind by kind: the neighbours of suites/planted/leak_test.cc.
#include "suites/support/cases/case.h"
#include "suites/support/cases/kind_cases.h"
#include "suites/support/journal_image.h"

namespace cuaudit::testing::kinds_test {
namespace {

using driver::CallId;
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

// Its handle is another object's by then. One of the two releases that follow takes that object, and the driver declines the other, as it
// does with every later retry; or the retry takes it, and the program goes on to use it.
void ExpectCouldNotKnow(const KindCase& c, const Trace& trial) {
  Trace rehearsal;
  c.acquire(rehearsal);
  c.release(rehearsal);
  const Judgement judgement = Judge(rehearsal, trial);
  EXPECT_EQ(judgement.verdict, Verdict::Pass) << Name(judgement.verdict);
  EXPECT_THAT(judgement.findings, IsEmpty());
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, harness::Rule::CouldNotKnow);
}

Trace RetriesLater(const KindCase& c, int told) {
  Trace t;
  for (int i = 0; i < told; ++i) {
    c.acquire(t);
    c.release(t);
    t.Last().After(CUDA_ERROR_LAUNCH_FAILED);
  }
  for (int later = 0; later < 3; ++later) {
    c.acquire(t);
    c.release(t);
    for (int i = 0; i < told + 1; ++i) {
      c.release(t);
      t.Last().Fails(CUDA_ERROR_INVALID_VALUE);
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
  }
}

CUAUDIT_CASE(OverReleasedPrimary, ARetryAfterAnotherPartHasReleased) {
  for (const KindCase& c : KindCases()) {
    if (c.kind == driver::Kind::PrimaryContext) ExpectCouldNotKnow(c, RetriesLater(c, 1));
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

// What the fault-free run keeps to its end could not be made, and something else of its sort is kept in its stead.
CUAUDIT_CASE(Leak, AFallbackForWhatIsKeptToTheEnd) {
  struct Pair {
    CallId best;
    CallId fallback;
  };
  for (const Pair& one : {Pair{CallId::StreamCreateWithPriority, CallId::StreamCreate}, Pair{CallId::MemAllocManaged, CallId::MemAlloc_v2},
                          Pair{CallId::MemAllocAsync, CallId::MemAlloc_v2}, Pair{CallId::MemHostAlloc, CallId::MemAllocHost_v2},
                          Pair{CallId::Array3DCreate_v2, CallId::ArrayCreate_v2}}) {
    for (const int status : {0, 1}) {
      SCOPED_TRACE(static_cast<int>(one.best));
      Trace rehearsal;
      rehearsal.Call(one.best).Out(0, 0x10).In(1, 0x1000).Stack(1);
      rehearsal.CreateStream(0x51).Stack(3);
      rehearsal.DestroyStream(0x51);
      Trace trial;
      trial.Call(one.best).Out(0, 0).In(1, 0x1000).Stack(1).Refused();
      trial.Call(one.fallback).Out(0, 0x20).In(1, 0x1000).Stack(2);
      trial.CreateStream(0x51).Stack(3);
      trial.DestroyStream(0x51);
      JournalImage before(rehearsal);
      JournalImage after(trial);
      for (JournalImage* const image : {&before, &after}) {
        image->Module("/bin/program");
        for (const std::uint32_t stack : {1U, 2U, 3U}) image->Stack(stack, {JournalImage::Frame(0, stack << 8U)});
      }
      const Judgement judgement = Judge(before.Evidence(), after.Evidence(status), true, {});
      EXPECT_EQ(judgement.verdict, status == 0 ? Verdict::Absorbed : Verdict::Pass) << Name(judgement.verdict);
      EXPECT_THAT(judgement.findings, IsEmpty());
      ASSERT_EQ(judgement.notes.size(), 1U);
      EXPECT_EQ(judgement.notes[0].rule, harness::Rule::ProcessLifetime);
    }
  }
}

// The same where its context ends with it, and where the function that would make it comes no further than a call before.
CUAUDIT_CASE(Leak, AFallbackForWhatIsKeptUntilItsContextEnds) {
  for (const bool came_to_it : {true, false}) {
    SCOPED_TRACE(came_to_it);
    Trace rehearsal;
    rehearsal.Retain().Stack(3);
    rehearsal.Call(CallId::CtxSetCurrent).Stack(4);
    rehearsal.Alloc(0x1000).Stack(1);
    rehearsal.ReleasePrimary().Stack(5);
    Trace trial;
    trial.Retain().Stack(3);
    Step set = trial.Call(CallId::CtxSetCurrent).Stack(4);
    came_to_it ? trial.Alloc(0).Stack(1).Refused() : set.Refused();
    trial.Alloc(0x2000).Stack(2);
    trial.ReleasePrimary().Stack(5);
    JournalImage before(rehearsal);
    JournalImage after(trial);
    for (JournalImage* const image : {&before, &after}) {
      image->Module("/bin/program");
      for (const std::uint32_t stack : {1U, 2U, 3U, 4U, 5U}) {
        image->Stack(stack, {JournalImage::Frame(0, stack), JournalImage::Frame(0, stack == 4 ? 0x100 : stack << 8U)});
      }
    }
    const Judgement judgement = Judge(before.Evidence(), after.Evidence(1), true, {});
    EXPECT_EQ(judgement.verdict, Verdict::Pass) << Name(judgement.verdict);
    EXPECT_THAT(judgement.findings, IsEmpty());
  }
}

}  // namespace
}  // namespace cuaudit::testing::kinds_test
