// SPDX-License-Identifier: MIT
// Deficits: what a trial gives back and does not own. The repaired twins are in suites/positive/deficit_test.cc.
#include <algorithm>

#include "suites/support/cases/deficits.h"

namespace cuaudit::testing::deficit_test {
namespace {

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
void ExpectDeficit(const Program& program, Kind kind, std::uint32_t stack) {
  const CaseRow row(kind);
  ExpectAt(JudgeProgram(program, false), Rule::Deficit, kind, stack);
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
CUAUDIT_CASE(Deficit, ADescriptorClosedAgain) { ExpectDeficit(ClosesTwice<false>, Kind::FileDescriptor, 109); }
CUAUDIT_CASE(Deficit, ADescriptorWhoseNumberIsAnothersNow) { ExpectDeficit(ClosesTwice<true>, Kind::FileDescriptor, 109); }

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
    ExpectAt(JudgeProgram(program, false), Rule::DoubleRelease, one.kind, 109);
  }
}

}  // namespace
}  // namespace cuaudit::testing::deficit_test
