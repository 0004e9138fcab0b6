// SPDX-License-Identifier: MIT
// Programs of common patterns that look suspicious and are right, under every fault and every second fault of their unwinding, and over
// cycles. Their wrong twins are in suites/planted/families_test.cc.
#include "suites/support/cases/families.h"

#include "suites/support/cases/case.h"
#include "suites/support/cases/endings.h"
#include "suites/support/cases/own_context.h"

namespace cuaudit::testing::families_test {
namespace {

using ::testing::IsEmpty;

template <typename Program>
Lifecycle Of(const char* family) {
  ::testing::Test::RecordProperty("family", family);
  return Lifecycle::Of<Program>("right").WithCurrentContext();
}

void ExpectSilent(const Lifecycle& lifecycle) {
  SweepOptions options;
  options.hows = {"refuse", "after", "persist", "burst:2"};
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

}  // namespace
}  // namespace cuaudit::testing::families_test
