// SPDX-License-Identifier: MIT
// Programs of common patterns with one thing wrong; their right twins are in suites/positive/families_test.cc.
#include "suites/support/cases/families.h"

#include <algorithm>

#include "suites/support/cases/case.h"
#include "suites/support/cases/endings.h"
#include "suites/support/cases/own_context.h"

namespace cuaudit::testing::families_test {
namespace {

template <typename Program>
Lifecycle Of(const char* family) {
  ::testing::Test::RecordProperty("family", family);
  return Lifecycle::Of<Program>("wrong").WithCurrentContext();
}

void ExpectFound(const Audit& audit) { EXPECT_EQ(audit.outcome, AuditOutcome::Findings) << audit.Text(); }

CUAUDIT_CASE(Growth, ACacheThatIsFilledInEveryCycle) {
  ExpectFound(Noted(RunCycles(Of<LazyCache<true>>("lazy process-lifetime cache").Prepare([] { LazyCache<true>::Reset(); }))));
}

// A sweep alone cannot find it, because every run leaves one. The sweep says that `cuaudit cycles` would.
TEST(CyclesDiffer, IsSaidOfACleanSweepWhoseCyclesLeaveMore) {
  const auto says = [](const Audit& audit) {
    const auto one = [](const auto& row) { return row.first.find("run cuaudit cycles") != std::string::npos; };
    return audit.outcome == AuditOutcome::Clean && std::any_of(audit.skipped.begin(), audit.skipped.end(), one);
  };
  const auto reset = [] { LazyCache<true>::Reset(); };
  EXPECT_TRUE(says(Sweep(Lifecycle::Of<LazyCache<true>>("each cycle").WithCurrentContext().Prepare(reset))));
  const auto reset_once = [] { LazyCache<false>::Reset(); };
  EXPECT_FALSE(says(Sweep(Lifecycle::Of<LazyCache<false>>("only once").WithCurrentContext().Prepare(reset_once))));
}

// The program's own count of owners shows in no call. What Start keeps is lost there when it is alone, and else where the other one stops.
CUAUDIT_CASE(Leak, AnOwnerThatFailsToStartKeepsItsShare) {
  Causes(2);
  ExpectFound(Noted(Sweep(Of<SharedStream<true>>("reference-counted sharing").Prepare([] { SharedStream<true>::Reset(); }))));
}

CUAUDIT_CASE(Leak, WhatWasCachedIsForgottenWhenMemoryRunsOut) {
  ExpectFound(Noted(Sweep(Of<RetryOnOutOfMemory<true>>("retry that absorbs out of memory"))));
}

CUAUDIT_CASE(Leak, MemoryOfAStreamWhoseWorkCouldNotBeQueued) { ExpectFound(Noted(Sweep(Of<StreamOrdered<true>>("stream-ordered free")))); }

CUAUDIT_CASE(BenignFailed, AnOptionalPoolThatIsNotOptional) {
  ExpectFound(Noted(Sweep(Of<OptionalPool<true>>("benign optional feature").Benign("cuMemPoolCreate"))));
}

CUAUDIT_CASE(Growth, AUserObjectThatNobodyGivesBack) {
  ExpectFound(Noted(RunCycles(Of<LateUserObject<true>>("user object released late"))));
}

CUAUDIT_CASE(HostFreedInUse, PinnedMemoryFreedWhenTheWorkFailed) {
  ExpectFound(Noted(Sweep(Of<PinnedUpload<true>>("pinned memory on the way back"))));
}

CUAUDIT_CASE(UnorderedAccess, AWaitWhoseAnswerNobodyReads) {
  Also(harness::Rule::Swallowed, driver::Kind::None);
  ExpectFound(Noted(Sweep(Of<WaitsInBetween<true>>("a wait of the host between two streams"))));
}

CUAUDIT_CASE(Leak, AStreamMadeInTheCallersContext) { ExpectFound(Noted(Sweep(Of<OwnContext<true>>("context of its own")))); }

CUAUDIT_CASE(Orphaned, InAContextOfItsOwnWithTheOption) {
  ASSERT_EQ(setenv("CUAUDIT_SWEEP", "--orphans finding", 1), 0);
  ExpectFound(Noted(Sweep(Of<OwnContext<false>>("context of its own"))));
  ASSERT_EQ(unsetenv("CUAUDIT_SWEEP"), 0);
}

CUAUDIT_CASE(Leak, MemoryOfAUserObjectThatCouldNotBeMade) {
  ExpectFound(Noted(Sweep(Of<DestructorFrees<true>>("memory of a user object"))));
}

CUAUDIT_CASE(Deficit, AHelperLeavesTheCallersContextThatIsThenDestroyed) {
  ExpectFound(Noted(Sweep(Of<LeavesItsOwnContext<Leaving::ThenDestroys, true>>("own context left by a helper, then destroyed"))));
}

CUAUDIT_CASE(Deficit, AHelperLeavesTheCallersContextThatIsThenTornDown) {
  ExpectFound(Noted(Sweep(Of<LeavesItsOwnContext<Leaving::ThenTearsDown, true>>("own context left by a helper, then torn down"))));
}

CUAUDIT_CASE(Deficit, AHelperLeavesTheCallersContextWithWorkBeforeItsEnd) {
  ExpectFound(Noted(Sweep(Of<LeavesItsOwnContext<Leaving::ThenWorksOn, true>>("own context left by a helper before more work"))));
}

CUAUDIT_CASE(ContextStack, APushThatStaysUnderANestedContext) {
  ExpectFound(Noted(Sweep(Of<NestsAContext<true>>("context nested over a push"))));
}

CUAUDIT_CASE(Deficit, AScopeThatPopsTheCallersContext) {
  Also(harness::Rule::NotRecovered, driver::Kind::None);  // the next cycle has no context
  ExpectFound(Noted(Sweep(Of<ScopedPush<true>>("scope over a push"))));
}

CUAUDIT_CASE(Deficit, AScopeThatReleasesTheCallersReference) {
  ExpectFound(Noted(Sweep(Of<ScopedReference<true>>("scope over a reference"))));
}

CUAUDIT_CASE(NullReleased, AStreamThatWasNotMade) { ExpectFound(Noted(Sweep(Of<DestroyedTogether<true>>("objects destroyed together")))); }

CUAUDIT_CASE(Leak, AnExitHandlerThatForgetsAStream) {
  ::testing::Test::RecordProperty("family", "cleanup by an exit handler");
  EXPECT_EQ(CleansUpAtExit(false).verdict, harness::Verdict::Leak);
}

CUAUDIT_CASE(Leak, AThreadOfThePoolThatNobodyJoins) {
  ::testing::Test::RecordProperty("family", "thread pool");
  EXPECT_EQ(UsesAThreadPool(false).verdict, harness::Verdict::Leak);
}

}  // namespace
}  // namespace cuaudit::testing::families_test
