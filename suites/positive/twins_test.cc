// SPDX-License-Identifier: MIT
// Programs of common patterns that look suspicious and are right, and programs that believe what the plan told them.
#include "suites/support/cases/case.h"
#include "suites/support/cases/families.h"
#include "suites/support/cases/null_releases.h"
#include "suites/support/cases/own_context.h"
#include "suites/support/cases/traces.h"

namespace cuaudit::testing::twins_test {
namespace {

// Programs of common patterns that look suspicious and are right, under every fault and every second fault of their unwinding, and over
// cycles. Their wrong twins are in suites/planted/twins_test.cc.

using ::testing::IsEmpty;

template <typename Program>
Lifecycle Of(const char* family) {
  ::testing::Test::RecordProperty("family", family);
  return Lifecycle::Of<Program>("right").WithCurrentContext();
}

void ExpectSilent(const Lifecycle& lifecycle) {
  SweepOptions options = {.hows = {"refuse", "after", "persist", "burst:2"}};
  const Audit swept = Noted(Sweep(lifecycle, options));
  EXPECT_EQ(swept.outcome, AuditOutcome::Clean) << swept.Text();
  EXPECT_GT(swept.fired, 0U);
  const Audit cycled = Noted(RunCycles(lifecycle));
  EXPECT_EQ(cycled.outcome, AuditOutcome::Clean) << cycled.Text();
}

CUAUDIT_CASE(Growth, ACacheThatIsFilledOnce) {
  ExpectSilent(Of<LazyCache<false>>("lazy process-lifetime cache").Prepare([] { LazyCache<false>::Reset(); }));
}

CUAUDIT_CASE(Leak, TheLastOwnerGivesTheStreamBack) {
  ExpectSilent(Of<SharedStream<false>>("reference-counted sharing").Prepare([] { SharedStream<false>::Reset(); }));
}

CUAUDIT_CASE(Swallowed, WhatWasCachedMakesRoom) { ExpectSilent(Of<RetryOnOutOfMemory<false>>("retry that absorbs out of memory")); }

CUAUDIT_CASE(UseAfterRelease, MemoryFreedInStreamOrder) { ExpectSilent(Of<StreamOrdered<false>>("stream-ordered free")); }

CUAUDIT_CASE(BenignFailed, AnOptionalPoolIsGoneWithout) {
  ExpectSilent(Of<OptionalPool<false>>("benign optional feature").Benign("cuMemPoolCreate"));
}

CUAUDIT_CASE(OverReleasedReference, AUserObjectThatItsGraphsGiveBack) {
  ExpectSilent(Of<LateUserObject<false>>("user object released late"));
}

CUAUDIT_CASE(HostFreedInUse, PinnedMemoryIsWaitedForAsWellAsItMay) {
  ExpectSilent(Of<PinnedUpload<false>>("pinned memory on the way back"));
}

CUAUDIT_CASE(UnorderedAccess, AWaitThatWasRefusedAndReported) {
  ExpectSilent(Of<WaitsInBetween<false>>("a wait of the host between two streams"));
}

CUAUDIT_CASE(Orphaned, AContextOfItsOwnTakesTheRestAlong) { ExpectSilent(Of<OwnContext<false>>("context of its own")); }

CUAUDIT_CASE(Leak, ADestructorThatFreesWhenTheLaunchIsOver) { ExpectSilent(Of<DestructorFrees<false>>("memory of a user object")); }

CUAUDIT_CASE(Deficit, AScopeThatPopsWhatItPushed) { ExpectSilent(Of<ScopedPush<false>>("scope over a push")); }

CUAUDIT_CASE(Deficit, AHelperLeavesTheOwnContextThatIsThenDestroyed) {
  ExpectSilent(Of<LeavesItsOwnContext<Leaving::ThenDestroys, false>>("own context left by a helper, then destroyed"));
}

CUAUDIT_CASE(Deficit, AHelperLeavesTheOwnContextThatIsThenTornDown) {
  ExpectSilent(Of<LeavesItsOwnContext<Leaving::ThenTearsDown, false>>("own context left by a helper, then torn down"));
}

CUAUDIT_CASE(Deficit, AHelperLeavesTheOwnContextWithWorkBeforeItsEnd) {
  ExpectSilent(Of<LeavesItsOwnContext<Leaving::ThenWorksOn, false>>("own context left by a helper before more work"));
}

CUAUDIT_CASE(ContextStack, AContextNestedOverAPush) { ExpectSilent(Of<NestsAContext<false>>("context nested over a push")); }

CUAUDIT_CASE(Deficit, AScopeThatReleasesWhatItRetained) { ExpectSilent(Of<ScopedReference<false>>("scope over a reference")); }

CUAUDIT_CASE(NullReleased, OnlyWhatWasMadeIsDestroyedTogether) { ExpectSilent(Of<DestroyedTogether<false>>("objects destroyed together")); }

CUAUDIT_CASE(NullReleased, AClassDestroysTheTextureObjectThatItHas) {
  ExpectSilent(Of<TextureInAClass<false>>("texture object in a class"));
}

CUAUDIT_CASE(NullReleased, AGraphOnTheListWhenItIsMade) { ExpectSilent(Of<ListOfUndoing<false>>("list of what is to be undone")); }

CUAUDIT_CASE(Leak, AnExitHandlerGivesBackTheRest) {
  ::testing::Test::RecordProperty("family", "cleanup by an exit handler");
  const harness::Judgement judgement = CleansUpAtExit(true);
  EXPECT_EQ(judgement.verdict, harness::Verdict::Pass) << Name(judgement.verdict);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

CUAUDIT_CASE(Leak, AThreadPoolIsJoinedOrKept) {
  ::testing::Test::RecordProperty("family", "thread pool");
  const harness::Judgement judgement = UsesAThreadPool(true);
  EXPECT_EQ(judgement.verdict, harness::Verdict::Pass) << Name(judgement.verdict);
  EXPECT_THAT(judgement.findings, IsEmpty());
}

// Programs that believe what the plan told them: of an object that is gone, or of one that still lives.

using driver::CallId;
using ::testing::ElementsAre;

CUAUDIT_CASE(UseAfterRelease, MemoryWhoseFreeWasSaidToHaveFailed) {
  Trace t;
  t.Alloc(0x1000);
  t.Free(0x1000).After();
  t.Call(CallId::MemsetD8_v2).In(0, 0x1010).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(UsedAfterFree, MemoryWhoseFreeWasSaidToHaveFailed) {
  Trace t;
  t.Alloc(0x1000);
  const Step free = t.Free(0x1000).After();
  const Step launch = t.Call(CallId::LaunchKernel).In(8, 0x5);
  t.Misuse(driver::MisuseRule::UsedAfterFree, driver::Kind::DeviceMemory, 0x1000, 64, launch.begin(), free.begin());
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(UseAfterRelease, AStreamWhoseDestructionWasRefusedAndWhoseContextIsGone) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Refused(CUDA_ERROR_INVALID_CONTEXT);
  t.ReleasePrimary();
  t.Call(CallId::StreamSynchronize).In(0, 0x10).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1 release_refused"));
}

CUAUDIT_CASE(UseAfterRelease, ACaptureIntoAGraphWhoseEndWasSaidToHaveFailed) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::GraphCreate).Out(0, 0x61);
  t.Call(CallId::StreamBeginCaptureToGraph).In(0, 0x8).In(1, 0x61);
  t.Call(CallId::MemsetD8Async).In(0, 0x10000).In(3, 0x8);
  t.Call(CallId::StreamEndCapture).In(0, 0x8).Out(1, 0x61).After();
  t.Free(0x10000);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x63).In(1, 0x61);
  t.Call(CallId::GraphLaunch).In(0, 0x63);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(ContextStack, APopThatWasSaidToHaveFailedIsTriedAgain) {
  Trace t;
  t.Push(0xa).Context(0xc);
  t.Pop(0xa).Context(0xa).After(CUDA_ERROR_INVALID_CONTEXT);
  t.Pop(0xc).Context(0xc);  // takes the caller's, in good faith
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

// The call answers the context and says that it failed. The library that goes by the context gives its reference back before its caller
// does.
CUAUDIT_CASE(UseAfterRelease, AReferenceThatIsSaidNotToBeThereGoesFirst) {
  for (const bool refused : {false, true}) {
    Trace rehearsal;
    Trace trial;
    for (Trace* const t : {&rehearsal, &trial}) {
      t->Retain();
      t->CreateStream(0x10);
      Step retain = t->Retain();
      t->ReleasePrimary();
      t->DestroyStream(0x10);
      if (t == &trial) retain.After();
      Step last = t->ReleasePrimary();
      if (t == &trial && refused) last.Refused();
    }
    EXPECT_THAT(Judge(rehearsal, trial).findings, IsEmpty()) << refused;
  }
}

// A pool keeps each block whose free failed and tries it again. The first such free was carried out, so the retries take newer blocks.
CUAUDIT_CASE(DoubleRelease, ARetryTakesABlockWhoseOwnReleaseIsThenTriedAgain) {
  Trace rehearsal;
  Trace trial;
  for (Trace* const t : {&rehearsal, &trial}) {
    const bool faulted = t == &trial;
    const auto free_fails = [t](std::uint32_t stack) { t->Free(0x1000).Stack(stack).Fails(CUDA_ERROR_INVALID_VALUE); };
    t->Alloc(0x1000);
    Step first = t->Free(0x1000).Stack(2);
    if (faulted) first.After();
    t->Alloc(0x1000);
    if (faulted) t->Free(0x1000).Stack(3);  // the retry
    t->Call(CallId::MemsetD8_v2).In(0, 0x1000).In(2, 16);
    if (!faulted) t->Free(0x1000).Stack(4);
    if (faulted) free_fails(4);
    if (faulted) free_fails(3);
    t->Alloc(0x1000);
    t->Free(0x1000).Stack(5);
    if (faulted) free_fails(6);
  }
  EXPECT_THAT(Judge(rehearsal, trial).findings, IsEmpty());
}

CUAUDIT_CASE(Orphaned, AResetThatWasRefused) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Refused(CUDA_ERROR_INVALID_DEVICE);
  t.DestroyStream(0x10);
  t.ReleasePrimary();
  ExpectSilent(t);
}

}  // namespace
}  // namespace cuaudit::testing::twins_test
