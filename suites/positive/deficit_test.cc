// SPDX-License-Identifier: MIT
// Trials that end with less than the fault-free run, or seem to, but gave back only what was theirs. The wrong twins are in
// suites/planted/twins_test.cc.
#include "suites/support/cases/deficits.h"
#include "suites/support/cases/traces.h"

namespace cuaudit::testing::deficit_test {
namespace {

using driver::CallId;
using driver::Kind;
using faults::HostCall;
using ::testing::IsEmpty;

template <typename Program>
void ExpectRight(const Program& program, Kind kind) {
  const CaseRow row(kind);
  EXPECT_THAT(JudgeProgram(program, true).findings, IsEmpty());
}

// Judges a correct program by comparing it with its fault-free run.
template <typename Program>
void ExpectQuiet(Kind kind, const Program& program) {
  ExpectRight(program, kind);
}

CUAUDIT_CASE(Deficit, OnlyWhatWasTakenIsGivenBack) {
  ExpectRight(ReleasesWhatItDidNotRetain<false>, Kind::PrimaryContext);
  ExpectRight(ReleasesWhatItDidNotRetain<true>, Kind::PrimaryContext);
  ExpectRight(LooksBeforeItReleases<false>, Kind::PrimaryContext);
  ExpectRight(LooksBeforeItReleases<true>, Kind::PrimaryContext);
  ExpectRight(ReleasesInADestructor, Kind::PrimaryContext);
  ExpectRight(ReleasesTwice, Kind::PrimaryContext);
  ExpectRight(GoesOnInAContextThatEnded<Goes::OnAndReleases>, Kind::PrimaryContext);
  ExpectRight(GoesOnInAContextThatEnded<Goes::StraightToItsReleases>, Kind::PrimaryContext);
  ExpectRight(GoesOnInAContextThatEnded<Goes::AstrayOnAnotherDevice>, Kind::PrimaryContext);
  ExpectRight(PopsWithoutItsPush<Below::Set>, Kind::ContextStackEntry);
  ExpectRight(PopsWithoutItsPush<Below::Created>, Kind::ContextStackEntry);
  ExpectRight(PopsWithoutItsPush<Below::Pushed>, Kind::ContextStackEntry);
  ExpectRight(PopsWithoutItsPush<Below::Nothing>, Kind::ContextStackEntry);
  ExpectRight(PopsTwice, Kind::ContextStackEntry);
  ExpectRight(ClosesWhatItWasGiven, Kind::FileDescriptor);
  ExpectRight(ClosesTwice<false>, Kind::FileDescriptor);
  ExpectRight(ClosesTwice<true>, Kind::FileDescriptor);
}

// What was never acquired cannot be missing: init failed, and the reference that the fault-free run keeps for the process is not there.
CUAUDIT_CASE(Deficit, LessWasTaken) {
  ExpectQuiet(Kind::PrimaryContext, [](Run run) {
    Trace t;
    Step kept = t.Retain().Stack(101);
    if (run != Run::FaultFree) kept.Refused();
    if (run != Run::FaultFree) return t;
    t.Retain().Stack(102);
    t.ReleasePrimary().Stack(103);
    return t;
  });
}

// Its owner gives back on the failing path what the fault-free run keeps for the process.
CUAUDIT_CASE(Deficit, WhatAnEarlierCycleCachedIsDropped) {
  ExpectQuiet(Kind::PrimaryContext, [](Run run) {
    Trace t;
    t.Retain().Stack(101);
    t.Retain().Stack(102);
    t.ReleasePrimary().Stack(103);
    FailsToAllocate(&t, run);
    if (run != Run::FaultFree) t.ReleasePrimary().Stack(105);
    return t;
  });
}

// One label cleans up after two acquisitions; the fault-free run gives back the first one earlier.
CUAUDIT_CASE(Deficit, OneLabelForTwoAcquisitions) {
  ExpectQuiet(Kind::ContextStackEntry, [](Run run) {
    Trace t;
    t.Call(CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
    t.Push(0xa).Context(kCallers).Stack(102);
    FailsToAllocate(&t, run);
    if (run == Run::FaultFree) {
      t.Pop(0xa).Context(0xa).Stack(104);
      t.Push(0xb).Context(kCallers).Stack(105);
    }
    const std::uint64_t current = run == Run::FaultFree ? 0xb : 0xa;
    t.Pop(current).Context(current).Stack(106);
    return t;
  });
}

// The second try pushes from another place than the first, and the same place pops.
CUAUDIT_CASE(Deficit, PushedByASecondTry) {
  ExpectQuiet(Kind::ContextStackEntry, [](Run run) {
    Trace t;
    t.Call(CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
    Step first = t.Push(0xa).Context(kCallers).Stack(102);
    if (run != Run::FaultFree) {
      first.Refused();
      t.Push(0xa).Context(kCallers).Stack(104);
    }
    t.Pop(0xa).Context(0xa).Stack(103);
    return t;
  });
}

// The caller's context is saved by a pop, in the fault-free run too, and the push that puts it back is refused.
CUAUDIT_CASE(Deficit, TheSavedContextCannotBePutBack) {
  ExpectQuiet(Kind::ContextStackEntry, [](Run run) {
    Trace t;
    t.Call(CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
    t.Pop(kCallers).Context(kCallers).Stack(102);
    t.Push(0xa).Context(0).Stack(103);
    t.Pop(0xa).Context(0xa).Stack(104);
    Step back = t.Push(kCallers).Context(0).Stack(105);
    if (run != Run::FaultFree) back.Refused();
    return t;
  });
}

// A context of the program's own is popped and destroyed where the fault-free run keeps it current.
CUAUDIT_CASE(Deficit, ACreatedContextIsPoppedByItsMaker) {
  ExpectQuiet(Kind::ContextStackEntry, [](Run run) {
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(101);
    t.Push(0xb).Context(0xa).Stack(102);
    t.Pop(0xb).Context(0xb).Stack(103);
    FailsToAllocate(&t, run);
    if (run != Run::FaultFree) t.Pop(0xa).Context(0xa).Stack(106);
    t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(run == Run::FaultFree ? 0xa : 0).Stack(107);
    return t;
  });
}

// The same, and the program asks the driver for the text of the error in between.
CUAUDIT_CASE(Deficit, ACreatedContextIsPoppedLongBeforeItIsDestroyed) { ExpectRight(PopsWhatItMade, Kind::ContextStackEntry); }

// A helper that pops other contexts, too, takes the program's own context off before it is destroyed.
CUAUDIT_CASE(Deficit, ACreatedContextIsPoppedByASharedHelper) {
  ExpectRight(LeavesItsOwn<Leaves::AndDestroys>, Kind::ContextStackEntry);
  ExpectRight(LeavesItsOwn<Leaves::AndTearsDown>, Kind::ContextStackEntry);
  ExpectRight(LeavesItsOwn<Leaves::AndWorksOn>, Kind::ContextStackEntry);
  ExpectRight(LeavesItsOwn<Leaves::AfterFailedPush>, Kind::ContextStackEntry);
  ExpectRight(LeavesItsOwn<Leaves::ByPopAfterPush>, Kind::ContextStackEntry);
  ExpectRight(LeavesItsOwn<Leaves::Twice>, Kind::ContextStackEntry);
  ExpectRight(LeavesItsOwn<Leaves::AndNeedsIt>, Kind::ContextStackEntry);
}

CUAUDIT_CASE(Deficit, ACreatedContextIsPoppedWhereItWasMadeOrIsDestroyed) {
  ExpectRight(LeavesInOneOfTwo<true>, Kind::ContextStackEntry);
  ExpectRight(LeavesInOneOfTwo<false>, Kind::ContextStackEntry);
  ExpectRight(PopsWhatItsCallerPushed, Kind::ContextStackEntry);
}

// The program was told that the pop had failed, and tries again.
CUAUDIT_CASE(Deficit, APopThatWasSaidToHaveFailed) {
  ExpectQuiet(Kind::ContextStackEntry, [](Run run) {
    Trace t;
    t.Call(CallId::CtxSetCurrent).In(0, kCallers).Context(0).Stack(101);
    t.Push(0xa).Context(kCallers).Stack(102);
    Step pop = t.Pop(0xa).Context(0xa).Stack(103);
    if (run == Run::FaultFree) return t;
    pop.After(CUDA_ERROR_INVALID_CONTEXT);
    t.Pop(kCallers).Context(kCallers).Stack(104);
    return t;
  });
}

// The program was told that the release had failed, and tries three times more. The driver has nothing left.
CUAUDIT_CASE(Deficit, APopThatWasSaidToHaveFailedIsTriedThreeTimes) {
  ExpectQuiet(Kind::ContextStackEntry, [](Run run) {
    Trace t;
    t.Push(0xa).Context(0).Stack(101);
    Step pop = t.Pop(0xa).Context(0xa).Stack(102);
    if (run == Run::FaultFree) return t;
    pop.After();
    for (int i = 0; i < 3; ++i) t.Pop(0).Context(0).Stack(102).Fails(CUDA_ERROR_INVALID_CONTEXT);
    return t;
  });
}
// The program was told that its context is still current, and takes it off by a pop.
CUAUDIT_CASE(Deficit, APopOfWhatWasSaidToBeStillCurrent) {
  ExpectQuiet(Kind::ContextStackEntry, [](Run run) {
    Trace t;
    t.Push(0xa).Context(0).Stack(101);
    t.Pop(0xa).Context(0xa).Stack(102);
    t.Call(CallId::CtxSetCurrent).In(0, 0xa).Context(0).Stack(103);
    Step off = t.Call(CallId::CtxSetCurrent).In(0, 0).Context(0xa).Stack(104);
    if (run == Run::FaultFree) return t;
    off.After();
    t.Pop(0).Context(0).Stack(102).Fails(CUDA_ERROR_INVALID_CONTEXT);
    return t;
  });
}
CUAUDIT_CASE(Deficit, AReleaseThatWasSaidToHaveFailedIsTriedThreeTimes) {
  ExpectQuiet(Kind::PrimaryContext, [](Run run) {
    Trace t;
    t.Retain().Stack(101);
    Step release = t.ReleasePrimary().Stack(102);
    if (run == Run::FaultFree) return t;
    release.After();
    for (int i = 0; i < 3; ++i) t.ReleasePrimary().Stack(102).Fails(CUDA_ERROR_INVALID_CONTEXT);
    return t;
  });
}

CUAUDIT_CASE(Deficit, ACreatedContextIsTakenOffAtOnceInEveryRun) { ExpectRight(TakesItOffAtOnce, Kind::ContextStackEntry); }
CUAUDIT_CASE(Deficit, AContextIsMadeInsteadOfAPush) { ExpectRight(MakesAContextInstead, Kind::ContextStackEntry); }

// The program was told that the push had failed. What it then takes off is what the push had put there, and not its own context.
CUAUDIT_CASE(Deficit, ItPopsWhatAPushThatWasSaidToHaveFailedPutThere) {
  ExpectQuiet(Kind::ContextStackEntry, [](Run run) {
    Trace t;
    t.Call(CallId::CtxCreate_v2).Out(0, 0xa).Context(0).Stack(101);
    Step push = t.Push(0xb).Context(0xa).Stack(Deeper(1, 1, 11));
    if (run != Run::FaultFree) push.After();
    t.Pop(0xb).Context(0xb).Stack(run == Run::FaultFree ? Deeper(1, 2, 12) : InHelper(2, 12));
    t.Call(CallId::CtxDestroy_v2).In(0, 0xa).Context(0xa).Stack(109);
    return t;
  });
}

// The release was refused once and is tried again, of the primary context and of the stack.
CUAUDIT_CASE(Deficit, ARefusedReleaseIsTriedAgain) {
  ExpectQuiet(Kind::PrimaryContext, [](Run run) {
    Trace t;
    t.Retain().Stack(101);
    t.Retain().Stack(102);
    if (run != Run::FaultFree) t.ReleasePrimary().Stack(103).Refused();
    t.ReleasePrimary().Stack(103);
    return t;
  });
}

// The standard streams are closed at the end of every run, from wherever the program ends.
CUAUDIT_CASE(Deficit, StandardStreamsClosedAtTheEnd) {
  ExpectQuiet(Kind::FileDescriptor, [](Run run) {
    Trace t;
    Watch(&t);
    FailsToAllocate(&t, run);
    t.Host(HostCall::DescriptorClose, 2).Stack(run == Run::FaultFree ? 105 : 205);
    return t;
  });
}

// A loop closes every number, and some were opened on the failing path.
CUAUDIT_CASE(Deficit, EveryNumberIsClosed) {
  ExpectQuiet(Kind::FileDescriptor, [](Run run) {
    Trace t;
    Watch(&t);
    FailsToAllocate(&t, run);
    if (run != Run::FaultFree) t.Host(HostCall::DescriptorOpen, 8).Stack(104);
    if (run != Run::FaultFree) t.Host(HostCall::DescriptorClose, 8).Stack(105);
    t.Host(HostCall::DescriptorClose, 4, faults::kNotOpen).Stack(106);
    if (run != Run::FaultFree) t.Host(HostCall::DescriptorClose, 8, faults::kNotOpen).Stack(106);
    return t;
  });
}

// A child closes what its parent opened, and a number is used again and again.
CUAUDIT_CASE(Deficit, DescriptorsOfAChildAndOfALoop) {
  ExpectQuiet(Kind::FileDescriptor, [](Run run) {
    Trace t;
    Watch(&t);
    FailsToAllocate(&t, run);
    for (int i = 0; i < (run == Run::FaultFree ? 2 : 3); ++i) {
      t.Host(HostCall::DescriptorOpen, 8).Stack(105);
      t.Host(HostCall::DescriptorClose, 8).Stack(106);
      t.Host(HostCall::DescriptorSocket, 8).Stack(107);
      t.Host(HostCall::DescriptorClose, 8).Stack(108);
    }
    if (run != Run::FaultFree) {
      t.Event(faults::ProcessEvent::Fork, 200, kProcess);
      t.Host(HostCall::DescriptorClose, 4).Process(200).Stack(109);
      t.Event(faults::ProcessEvent::Exit, 200, kProcess);
    }
    return t;
  });
}

CUAUDIT_CASE(Deficit, AChildUsesTheSameNumbers) {
  ExpectRight(ClosesBesidesAChild<true>, Kind::FileDescriptor);
  ExpectRight(ClosesBesidesAChild<false>, Kind::FileDescriptor);
}

// The failing path closes a number that it never got.
CUAUDIT_CASE(Deficit, ANumberThatWasNeverOpen) {
  ExpectQuiet(Kind::FileDescriptor, [](Run run) {
    Trace t;
    Watch(&t);
    FailsToAllocate(&t, run);
    if (run != Run::FaultFree) t.Host(HostCall::DescriptorClose, 51).In(1, faults::kNotOpen).Stack(105);
    return t;
  });
}

// The driver's code closes a number that was open when the program began.
CUAUDIT_CASE(Deficit, ADescriptorThatTheDriverCloses) {
  ExpectQuiet(Kind::FileDescriptor, [](Run run) {
    Trace t;
    Watch(&t);
    FailsToAllocate(&t, run);
    if (run != Run::FaultFree) t.Host(HostCall::DescriptorClose, 4).Stack(kInDriver);
    return t;
  });
}

// A graphics driver made it past the wrappers. The program is told that the import failed, so it closes what it was given.
CUAUDIT_CASE(Deficit, ADescriptorThatTheDriverIsSaidNotToHaveTakenOver) {
  ExpectQuiet(Kind::FileDescriptor, [](Run run) {
    Trace t;
    Watch(&t);
    Step import = Import(t, CallId::ImportExternalSemaphore, 8).Stack(104);
    if (run != Run::FaultFree) import.After();
    if (run != Run::FaultFree) t.Host(HostCall::DescriptorClose, 8).Stack(105);
    if (run == Run::FaultFree) t.Call(CallId::DestroyExternalSemaphore).In(0, kImported).Stack(106);
    return t;
  });
}

// The failing path makes a file of its standard error stream.
CUAUDIT_CASE(Deficit, AStandardStreamIsReplaced) { ExpectRight(ReplacesAStandardStream, Kind::FileDescriptor); }

CUAUDIT_CASE(NullReleased, FreeingNullIsNoCall) {
  for (const CallId call : {CallId::MemFree_v2, CallId::MemFreeAsync, CallId::MemFreeHost}) {
    const auto program = [&](Run run) { return DestroysNull(run == Run::Right ? Run::Wrong : run, call, CUDA_SUCCESS); };
    ExpectRight(program, driver::EffectOf(driver::BaseOf(call)).kind);
  }
}

// The handle is tested first.
CUAUDIT_CASE(NullReleased, OnlyWhatWasMadeIsDestroyed) {
  ExpectRight([](Run run) { return DestroysNull(run, CallId::GraphDestroy, CUDA_ERROR_INVALID_VALUE); }, Kind::Graph);
}

// The fault-free run destroys null there, too, from another caller of the same clean-up.
CUAUDIT_CASE(NullReleased, TheCleanUpAlwaysDoesSo) {
  ExpectQuiet(Kind::TextureObject, [](Run run) {
    Trace t;
    FailsToAllocate(&t, run);
    t.Call(CallId::TexObjectDestroy).In(0, 0).Stack(run == Run::FaultFree ? 105 : 205);
    return t;
  });
}

// Nothing is left to release in a driver that is torn down.
CUAUDIT_CASE(NullReleased, TheDriverIsTornDown) {
  ExpectQuiet(Kind::Stream, [](Run run) {
    Trace t;
    FailsToAllocate(&t, run);
    if (run != Run::FaultFree) t.DestroyStream(0).Fails(CUDA_ERROR_DEINITIALIZED).Stack(105);
    return t;
  });
}

}  // namespace
}  // namespace cuaudit::testing::deficit_test
