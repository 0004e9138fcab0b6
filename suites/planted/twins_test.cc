// SPDX-License-Identifier: MIT
// Programs with one thing wrong: common patterns, and trials that give back what they do not own. Their right twins are in
// suites/positive/twins_test.cc and deficit_test.cc.
#include <algorithm>

#include "suites/support/cases/case.h"
#include "suites/support/cases/deficits.h"
#include "suites/support/cases/families.h"
#include "suites/support/cases/null_releases.h"
#include "suites/support/cases/own_context.h"
#include "suites/support/cases/traces.h"

namespace cuaudit::testing::twins_test {
namespace {

// Common patterns.

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

CUAUDIT_CASE(NullReleased, ATextureObjectThatItsClassDoesNotHave) {
  ExpectFound(Noted(Sweep(Of<TextureInAClass<true>>("texture object in a class"))));
}

CUAUDIT_CASE(NullReleased, AGraphOnTheListBeforeItIsMade) {
  ExpectFound(Noted(Sweep(Of<ListOfUndoing<true>>("list of what is to be undone"))));
}

CUAUDIT_CASE(Leak, AnExitHandlerThatForgetsAStream) {
  ::testing::Test::RecordProperty("family", "cleanup by an exit handler");
  EXPECT_EQ(CleansUpAtExit(false).verdict, harness::Verdict::Leak);
}

CUAUDIT_CASE(Leak, AThreadOfThePoolThatNobodyJoins) {
  ::testing::Test::RecordProperty("family", "thread pool");
  EXPECT_EQ(UsesAThreadPool(false).verdict, harness::Verdict::Leak);
}

// Deficits: what a trial gives back and does not own.

using driver::CallId;
using driver::Kind;
using harness::Judgement;
using harness::Rule;
using harness::Verdict;

// The one finding, at the call with this stack.
void ExpectAt(const Judgement& judgement, Rule rule, Kind kind, std::uint32_t stack) {
  EXPECT_EQ(judgement.verdict, Verdict::Misuse);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, rule);
  EXPECT_EQ(judgement.findings[0].kind, kind);
  EXPECT_EQ(judgement.findings[0].count, 1U);
  EXPECT_EQ(judgement.findings[0].where.stack, stack);
}

template <typename Program>
void ExpectDeficit(const Program& program, Kind kind, std::uint32_t stack, std::uint32_t before = 0) {
  const CaseRow row(kind);
  const Judgement judgement = JudgeProgram(program, false);
  ExpectAt(judgement, Rule::Deficit, kind, stack);
  if (!judgement.findings.empty()) {
    EXPECT_EQ(judgement.findings[0].other.stack, before) << "the close before";
  }
}

CUAUDIT_CASE(Deficit, ThePrimaryContextIsReleasedAfterItsRetainFailed) {
  ExpectDeficit(ReleasesWhatItDidNotRetain<false>, Kind::PrimaryContext, 103);
}
CUAUDIT_CASE(Deficit, TheOwnersReleaseFindsNothingLeft) { ExpectDeficit(ReleasesWhatItDidNotRetain<true>, Kind::PrimaryContext, 103); }
CUAUDIT_CASE(Deficit, APairOfTheFailingPathExplainsNothing) {
  ExpectDeficit(LooksBeforeItReleases<false>, Kind::PrimaryContext, 103);
  ExpectDeficit(LooksBeforeItReleases<true>, Kind::PrimaryContext, 103);
}
CUAUDIT_CASE(Deficit, AnotherDeviceIsOverReleasedBesides) {
  const auto program = [](Run run, bool first_has_an_owner) {
    Trace t = LooksBeforeItReleases<false>(run);
    if (first_has_an_owner) t = ReleasesWhatItDidNotRetain<true>(run);
    t.Retain(0xc1, 1).Stack(111);
    t.ReleasePrimary(1).Stack(112);
    if (run == Run::Wrong) t.ReleasePrimary(1).Stack(113).Fails(CUDA_ERROR_INVALID_CONTEXT);
    return t;
  };
  for (const bool owner : {false, true}) {
    const CaseRow row(owner ? "owner releases" : "owner keeps");
    Causes(2);
    Also(Rule::OverReleasedPrimary, Kind::PrimaryContext);
    const Judgement judgement = JudgeRuns(program(Run::FaultFree, owner), program(Run::Wrong, owner));
    ASSERT_EQ(judgement.findings.size(), 2U) << owner;
    const auto at = [&](Rule rule, std::uint32_t stack) {
      return std::count_if(judgement.findings.begin(), judgement.findings.end(),
                           [&](const harness::TrialFinding& one) { return one.rule == rule && one.where.stack == stack; });
    };
    EXPECT_EQ(at(Rule::Deficit, 103), 1) << owner;
    EXPECT_EQ(at(Rule::OverReleasedPrimary, 113), 1) << owner;
  }
}
CUAUDIT_CASE(Deficit, AnotherThreadPopsTooOftenBesides) {
  const auto program = [](Run run) {
    Trace t;
    t.Push(0xa).Thread(7).Context(0).Stack(111);
    t.Pop(0xa).Thread(7).Context(0xa).Stack(112);
    if (run != Run::FaultFree) t.Pop(0xd).Thread(7).Context(0xd).Stack(113);
    t.Call(CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
    Step push = t.Push(0xa).Context(kCallers).Stack(102);
    if (run != Run::FaultFree) push.Refused();
    const std::uint64_t popped = run == Run::FaultFree ? 0xa : kCallers;
    t.Pop(popped).Context(popped).Stack(103);
    return t;
  };
  Causes(2);
  Also(Rule::ContextStack, Kind::ContextStackEntry);
  const Judgement judgement = JudgeRuns(program(Run::FaultFree), program(Run::Wrong));
  ASSERT_EQ(judgement.findings.size(), 2U);
  EXPECT_TRUE(std::any_of(judgement.findings.begin(), judgement.findings.end(),
                          [](const harness::TrialFinding& one) { return one.rule == Rule::ContextStack && one.where.stack == 113; }));
}
CUAUDIT_CASE(Deficit, ADestructorReleasesWhatTheConstructorDidNotGet) { ExpectDeficit(ReleasesInADestructor, Kind::PrimaryContext, 203); }
CUAUDIT_CASE(Deficit, ThePrimaryContextIsReleasedTwice) { ExpectDeficit(ReleasesTwice, Kind::PrimaryContext, 106); }

CUAUDIT_CASE(Deficit, TheCallerGoesOnInAContextThatEnded) {
  ExpectDeficit(GoesOnInAContextThatEnded<Goes::OnAndReleases>, Kind::PrimaryContext, 106);
  ExpectDeficit(GoesOnInAContextThatEnded<Goes::StraightToItsReleases>, Kind::PrimaryContext, 106);
  Causes(2);
  Also(Rule::UseAfterRelease, Kind::Stream);
  constexpr auto program = GoesOnInAContextThatEnded<Goes::AstrayOnAnotherDevice>;
  const Judgement judgement = JudgeRuns(program(Run::FaultFree), program(Run::Wrong));
  ASSERT_EQ(judgement.findings.size(), 2U);
  for (const harness::TrialFinding& one : judgement.findings) EXPECT_EQ(one.where.stack, one.rule == Rule::Deficit ? 106U : 122U);
}

template <Before before>
void ExpectTheFallbackToo(Rule too_many) {
  const Judgement judgement = JudgeProgram(AFallbackUsesWhatItReleased<before>, false);
  const auto has = [&](Rule rule, std::uint32_t stack) {
    return std::any_of(judgement.findings.begin(), judgement.findings.end(),
                       [&](const harness::TrialFinding& one) { return one.rule == rule && one.where.stack == stack; });
  };
  EXPECT_TRUE(has(Rule::UseAfterRelease, 119));
  EXPECT_TRUE(has(too_many, 106));
}

CUAUDIT_CASE(UseAfterRelease, AFallbackAfterAReleaseTooMany) {
  Causes(3);
  Also(Rule::Deficit, Kind::PrimaryContext);
  Also(Rule::OverReleasedPrimary, Kind::PrimaryContext);
  Also(Rule::Orphaned, Kind::DeviceMemory);
  ExpectTheFallbackToo<Before::NothingWasLeft>(Rule::OverReleasedPrimary);
  ExpectTheFallbackToo<Before::TheCallerWasInIt>(Rule::Deficit);
}

CUAUDIT_CASE(Deficit, APopWithoutItsPushTakesWhatTheCallerSet) {
  ExpectDeficit(PopsWithoutItsPush<Below::Set>, Kind::ContextStackEntry, 103);
}
CUAUDIT_CASE(Deficit, APopWithoutItsPushTakesWhatTheCallerCreated) {
  ExpectDeficit(PopsWithoutItsPush<Below::Created>, Kind::ContextStackEntry, 103);
}
CUAUDIT_CASE(Deficit, APopWithoutItsPushTakesWhatTheCallerPushed) {
  ExpectDeficit(PopsWithoutItsPush<Below::Pushed>, Kind::ContextStackEntry, 103);
}
CUAUDIT_CASE(Deficit, APopWithoutItsPushFindsNothing) { ExpectDeficit(PopsWithoutItsPush<Below::Nothing>, Kind::ContextStackEntry, 103); }
CUAUDIT_CASE(Deficit, APopOfTheMadeContextThatTheThreadThenLacks) { ExpectDeficit(PopsWhatItMade, Kind::ContextStackEntry, 106); }
CUAUDIT_CASE(Deficit, AHelperPopsAfterAFailedPushWhatTheCallerThenDestroys) {
  ExpectDeficit(LeavesItsOwn<Leaves::AfterFailedPush>, Kind::ContextStackEntry, Deeper(1, 4, 12));
}
CUAUDIT_CASE(Deficit, AnErrorPathPopsAfterItsFailedPushWhatTheCallerThenDestroys) {
  ExpectDeficit(LeavesItsOwn<Leaves::ByPopAfterPush>, Kind::ContextStackEntry, InHelper(1, 6));
}
CUAUDIT_CASE(Deficit, AHelperPopsTwiceWhatTheCallerThenDestroys) {
  ExpectDeficit(LeavesItsOwn<Leaves::Twice>, Kind::ContextStackEntry, Deeper(1, 4, 12));
}
CUAUDIT_CASE(Deficit, AHelperPopsTheMadeContextThatTheThreadThenLacks) {
  ExpectDeficit(LeavesItsOwn<Leaves::AndNeedsIt>, Kind::ContextStackEntry, InHelper(2, 12));
}
CUAUDIT_CASE(Deficit, APopBesidesAContextThatEveryRunTakesOff) { ExpectDeficit(TakesItOffAtOnce, Kind::ContextStackEntry, 109); }
CUAUDIT_CASE(Deficit, AContextMadeInsteadExplainsNoOtherPop) { ExpectDeficit(MakesAContextInstead, Kind::ContextStackEntry, 103); }
CUAUDIT_CASE(Deficit, AHelperPopsWhatItsCallerPushed) { ExpectDeficit(PopsWhatItsCallerPushed, Kind::ContextStackEntry, InHelper(3, 12)); }
CUAUDIT_CASE(Deficit, PoppedTwiceOverTheCallersContext) { ExpectDeficit(PopsTwice, Kind::ContextStackEntry, 106); }

CUAUDIT_CASE(Deficit, ADescriptorThatTheParentOpened) { ExpectDeficit(ClosesWhatItWasGiven, Kind::FileDescriptor, 105); }
CUAUDIT_CASE(Deficit, AStandardStreamWhoseNumberASocketGetsLater) { ExpectDeficit(ReplacesAStandardStream, Kind::FileDescriptor, 104); }
CUAUDIT_CASE(Deficit, ADescriptorWhoseNumberAChildOpensToo) { ExpectDeficit(ClosesBesidesAChild<true>, Kind::FileDescriptor, 105); }
CUAUDIT_CASE(Deficit, ADescriptorClosedAgain) { ExpectDeficit(ClosesTwice<false>, Kind::FileDescriptor, 109, 108); }
CUAUDIT_CASE(Deficit, ADescriptorWhoseNumberIsAnothersNow) { ExpectDeficit(ClosesTwice<true>, Kind::FileDescriptor, 109, 108); }

// Unowned handles have one rule for each kind of answer that a driver gives: an error, or success.
CUAUDIT_CASE(NullReleased, EveryKindThatADriverIsAskedToDestroy) {
  struct Destroy {
    CallId call;
    Kind kind;
    CUresult answer;
  };
  for (const Destroy& one : {Destroy{CallId::GraphDestroy, Kind::Graph, CUDA_ERROR_INVALID_VALUE},
                             Destroy{CallId::TexObjectDestroy, Kind::TextureObject, CUDA_SUCCESS},
                             Destroy{CallId::StreamDestroy_v2, Kind::Stream, CUDA_ERROR_INVALID_HANDLE},
                             Destroy{CallId::CtxDestroy_v2, Kind::Context, CUDA_ERROR_INVALID_VALUE},
                             Destroy{CallId::UserObjectRelease, Kind::UserObject, CUDA_ERROR_INVALID_VALUE},
                             Destroy{CallId::MemUnmap, Kind::Mapping, CUDA_ERROR_INVALID_VALUE}}) {
    const CaseRow row(one.kind);
    const auto program = [&](Run run) { return DestroysNull(run, one.call, one.answer); };
    ExpectAt(JudgeProgram(program, false), Rule::NullReleased, one.kind, 105);
  }
}

// Things that are counted by handle have rules of their own, with and without a fault.
CUAUDIT_CASE(DoubleRelease, OnTheFailingPathAndOnEveryPath) {
  struct Pair {
    CallId acquire;
    CallId release;
    Kind kind;
  };
  for (const Pair& one : {Pair{CallId::MemHostRegister_v2, CallId::MemHostUnregister, Kind::HostRegistration},
                          Pair{CallId::MemMap, CallId::MemUnmap, Kind::Mapping},
                          Pair{CallId::MemRetainAllocationHandle, CallId::MemRelease, Kind::PhysicalMemory}}) {
    const CaseRow row(one.kind);
    const auto program = [&](Run run) {
      Trace t;
      t.Call(one.acquire).In(0, 0x20000).In(1, 0x1000).Stack(107);
      FailsToAllocate(&t, run);
      if (run != Run::FaultFree) t.Call(one.release).In(0, 0x20000).In(1, 0x1000).Stack(108);
      if (run != Run::Right) t.Call(one.release).In(0, 0x20000).In(1, 0x1000).Stack(109);
      return t;
    };
    const Judgement judgement = JudgeProgram(program, false);
    ExpectAt(judgement, Rule::DoubleRelease, one.kind, 109);
    ASSERT_FALSE(judgement.findings.empty());
    EXPECT_EQ(judgement.findings[0].other.stack, 108U);
    EXPECT_NE(judgement.findings[0].other_key, 0U);
  }
}

// What the fault-free run does wrong is no finding of a trial that does it after another first release.
TEST(FirstRelease, DoesNotTellTwoReleasesApart) {
  const Aside aside;
  const auto program = [](auto run) {
    Trace t;
    t.Call(CallId::StreamCreate).Out(0, 0x10).Stack(107);
    FailsToAllocate(&t, run);
    t.DestroyStream(0x10).Stack(run == decltype(run)::FaultFree ? 108 : 110);
    t.DestroyStream(0x10).Stack(109);
    return t;
  };
  EXPECT_TRUE(JudgeProgram(program, false).findings.empty());
}

// The same of a use.
TEST(FirstRelease, DoesNotTellTwoUsesApart) {
  const Aside aside;
  const auto program = [](auto run) {
    Trace t;
    t.Call(CallId::StreamCreate).Out(0, 0x10).Stack(107);
    FailsToAllocate(&t, run);
    t.DestroyStream(0x10).Stack(run == decltype(run)::FaultFree ? 108 : 110);
    t.Call(CallId::StreamSynchronize).In(0, 0x10).Stack(109);
    return t;
  };
  EXPECT_TRUE(JudgeProgram(program, false).findings.empty());
}

}  // namespace
}  // namespace cuaudit::testing::twins_test
