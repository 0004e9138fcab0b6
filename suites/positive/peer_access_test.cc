// SPDX-License-Identifier: MIT
// Peer access that nobody owes: it went with a context of the program, or was never the program's. The wrong twins are in
// suites/planted/peer_access_test.cc.
#include "suites/support/cases/peer_access.h"

namespace cuaudit::testing::peer_access_test {
namespace {

using driver::CallId;
using driver::Kind;
using harness::Rule;
using ::testing::IsEmpty;

template <typename Program>
void ExpectRight(const Program& program) {
  const CaseRow row(Kind::PeerAccess);
  EXPECT_THAT(JudgeProgram(program, true).findings, IsEmpty());
}

CUAUDIT_CASE(Orphaned, BothDirectionsOfPeerAccessAreUndone) { ExpectRight(EnablesBothWays); }
CUAUDIT_CASE(Leak, PeerAccessIsUndone) {
  ExpectRight(LeavesTheCallersContextWithAccess);
  ExpectRight(UndoesOnlyTheNewest);
  ExpectRight(CannotGoBackToDisable);
  ExpectRight(DisablesTheWrongDirection);
}

// A later choice of a context ends what the refused one excuses: the program could have gone back by then.
CUAUDIT_CASE(ReleaseRefused, PeerAccessThatIsDisabledAfterAnotherTry) {
  const CaseRow row(Kind::PeerAccess);
  Trace t;
  EnablePeer(&t, 0xa, 0xb);
  SetCurrent(&t, 0xb, 0xa).Refused();
  SetCurrent(&t, 0xb, 0xa);
  DisablePeer(&t, 0xa, 0xb);
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
}
CUAUDIT_CASE(Deficit, OnlyThePeerAccessThatItEnabled) {
  ExpectRight(DisablesTheCallers);
  ExpectRight(DisablesWhatWasRefused);
  ExpectRight(DisablesTwice);
}

// The failing path only destroys the context that the program made: the one that has access, or the one whose memory may be used.
enum class Made { HasAccess, IsThePeer };
template <Made made>
Trace LeavesItToItsContext(Run run) {
  Trace t;
  t.Call(CallId::CtxCreate_v2).Out(0, kOwnPeer).Context(0).Stack(101);
  const std::uint64_t context = made == Made::HasAccess ? kOwnPeer : kCallers;
  const std::uint64_t peer = made == Made::HasAccess ? kCallers : kOwnPeer;
  EnablePeer(&t, context, peer).Stack(104);
  FailsToAllocate(&t, run);
  if (run == Run::FaultFree) DisablePeer(&t, context, peer).Stack(105);
  Step destroy = t.Call(CallId::CtxDestroy_v2).In(0, kOwnPeer).Context(kOwnPeer).Stack(106);
  if (run == Run::Wrong) destroy.Refused();
  return t;
}

CUAUDIT_CASE(Orphaned, PeerAccessGoesWithAContextOfTheProgram) {
  ExpectRight(LeavesItToItsContext<Made::HasAccess>);
  ExpectRight(LeavesItToItsContext<Made::IsThePeer>);
  const Aside aside;
  const harness::Judgement judgement = JudgeProgram(LeavesItToItsContext<Made::IsThePeer>, true);
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_EQ(judgement.notes[0].rule, Rule::ReliedOnContext);
  EXPECT_EQ(judgement.notes[0].kind, Kind::PeerAccess);
}

// The plan refuses the destruction that would have ended it.
CUAUDIT_CASE(Leak, PeerAccessOfAContextThatCouldNotBeDestroyed) {
  for (const bool has_access : {true, false}) {
    const CaseRow row(Kind::PeerAccess);
    const harness::Judgement judgement = has_access ? JudgeProgram(LeavesItToItsContext<Made::HasAccess>, false)
                                                    : JudgeProgram(LeavesItToItsContext<Made::IsThePeer>, false);
    EXPECT_THAT(judgement.findings, IsEmpty());
    EXPECT_EQ(judgement.notes.size(), 2U) << "the context, and what it would have taken along";
  }
}

// The driver declines, because somebody else has enabled it. It is not the program's, and stays.
CUAUDIT_CASE(Leak, PeerAccessThatWasEnabledAlready) {
  const CaseRow row(Kind::PeerAccess);
  Trace t;
  EnablePeer(&t, kCallers, kPeerPrimary).Fails(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
}

// The fault-free run keeps the access for the process. Whoever enabled it may disable it on the failing path.
CUAUDIT_CASE(Deficit, PeerAccessThatEveryOtherRunKeeps) {
  ExpectRight([](Run run) {
    Trace t;
    EnablePeer(&t, kCallers, kPeerPrimary).Stack(101);
    FailsToAllocate(&t, run);
    if (run != Run::FaultFree) DisablePeer(&t, kCallers, kPeerPrimary).Stack(105);
    return t;
  });
}

// Under `after` the access is there, and the program was told that it is not: it may disable it, or leave it.
CUAUDIT_CASE(Deficit, PeerAccessThatWasSaidNotToBeEnabled) {
  for (const bool disables : {true, false}) {
    ExpectRight([&](Run run) {
      Trace t;
      Step enable = EnablePeer(&t, kCallers, kPeerPrimary).Stack(101);
      if (run != Run::FaultFree) enable.After();
      if (run == Run::FaultFree || disables) DisablePeer(&t, kCallers, kPeerPrimary).Stack(103);
      return t;
    });
  }
}

// The program was told that the first call had failed, and tries again. The driver has nothing left.
CUAUDIT_CASE(Deficit, PeerAccessThatWasSaidToBeStillEnabled) {
  ExpectRight([](Run run) {
    Trace t;
    EnablePeer(&t, kCallers, kPeerPrimary).Stack(101);
    Step disable = DisablePeer(&t, kCallers, kPeerPrimary).Stack(103);
    if (run == Run::FaultFree) return t;
    disable.After();
    for (int i = 0; i < 3; ++i) DisablePeer(&t, kCallers, kPeerPrimary).Stack(103).Fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    return t;
  });
}

// With its last reference the peer ended for a driver without another holder. It may be enabled again, and then or later disabled.
CUAUDIT_CASE(Leak, PeerAccessThatEndedWithThePrimaryContextOfThePeer) {
  const CaseRow row(Kind::PeerAccess);
  for (const bool again : {true, false}) {
    Trace t;
    t.Retain(kPeerPrimary, 1);
    EnablePeer(&t, kCallers, kPeerPrimary);
    t.ReleasePrimary(1);
    t.Retain(kPeerPrimary, 1);
    if (again) EnablePeer(&t, kCallers, kPeerPrimary);
    Step disable = DisablePeer(&t, kCallers, kPeerPrimary);
    if (!again) disable.Fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    t.ReleasePrimary(1);
    EXPECT_THAT(Left(t.Fold()), IsEmpty());
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
}

// The driver says that the peer is gone: its last reference was the program's.
CUAUDIT_CASE(Leak, PeerAccessWhosePeerIsDestroyedForTheDriver) {
  const CaseRow row(Kind::PeerAccess);
  Trace t;
  t.Retain(kPeerPrimary, 1);
  EnablePeer(&t, kCallers, kPeerPrimary);
  t.ReleasePrimary(1);
  DisablePeer(&t, kCallers, kPeerPrimary).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(Orphaned, PeerAccessThatWasEnabledInTheViewOfAGreenContext) {
  const CaseRow row(Kind::PeerAccess);
  EXPECT_THAT(Left(EnablesInAView(true).Fold()), IsEmpty());
  EXPECT_THAT(Wrong(EnablesInAView(true).Fold()), IsEmpty());
}

// A reset of the peer ends the access. It may be disabled all the same, or enabled again.
CUAUDIT_CASE(Orphaned, PeerAccessThatEndedWithAResetOfThePeer) {
  enum class Then { Nothing, IsGone, IsNotEnabled, Again };
  for (const Then then : {Then::Nothing, Then::IsGone, Then::IsNotEnabled, Then::Again}) {
    const CaseRow row(Kind::PeerAccess);
    Trace t;
    t.Retain(kPeerPrimary, 1);
    EnablePeer(&t, kCallers, kPeerPrimary);
    t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 1).Context(kCallers);
    if (then == Then::Again) EnablePeer(&t, kCallers, kPeerPrimary);
    if (then != Then::Nothing) {
      Step disable = DisablePeer(&t, kCallers, kPeerPrimary);
      if (then == Then::IsGone) disable.Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
      if (then == Then::IsNotEnabled) disable.Fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    }
    t.ReleasePrimary(1);
    const bool was_disabled = then == Then::IsGone || then == Then::IsNotEnabled;
    const std::vector<std::string> noted(was_disabled ? 0 : 1, "peer_access 1 relied_on_context");
    EXPECT_EQ(Left(t.Fold()), noted) << static_cast<int>(then);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty()) << static_cast<int>(then);
  }
}

// The access that the plan enabled under `after` stands in the way of the next cycle, or host memory that it registered.
CUAUDIT_CASE(NotRecovered, WhatWasSaidNotToBeThereIsThereAlready) {
  struct Given {
    CallId acquire;
    CallId release;
    CUresult already;
  };
  for (const Given& one : {Given{CallId::CtxEnablePeerAccess, CallId::CtxDisablePeerAccess, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED},
                           Given{CallId::MemHostRegister_v2, CallId::MemHostUnregister, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED}}) {
    const auto cycles = [&](bool faulted) {
      MarkedCycles all;
      for (const std::uint32_t cycle : {1U, 2U}) {
        all.Begin();
        Step acquire = all.trace.Call(one.acquire).In(0, 0x1000).Context(kCallers).Stack(1).Cycle(cycle);
        if (faulted && cycle == 1) acquire.After();
        if (faulted && cycle == 2) acquire.Fails(one.already);
        if (!faulted) all.trace.Call(one.release).In(0, 0x1000).Context(kCallers).Stack(2).Cycle(cycle);
        all.End(!faulted ? CUDA_SUCCESS : cycle == 1 ? CUDA_ERROR_LAUNCH_FAILED : one.already);
      }
      return all.trace;
    };
    const harness::Judgement judgement = Judge(cycles(false), cycles(true));
    EXPECT_THAT(judgement.findings, IsEmpty());
    EXPECT_EQ(judgement.recovery, harness::Recovery::Refused);
  }
}

// Two contexts of one peer, and two peers of one context, are four different things.
CUAUDIT_CASE(DoubleRelease, PeerAccessOfEveryPair) {
  const CaseRow row(Kind::PeerAccess);
  Trace t;
  for (const std::uint64_t context : {0xaU, 0xbU}) {
    for (const std::uint64_t peer : {0xcU, 0xdU}) EnablePeer(&t, context, peer);
  }
  for (const std::uint64_t peer : {0xdU, 0xcU}) {
    for (const std::uint64_t context : {0xaU, 0xbU}) DisablePeer(&t, context, peer);
  }
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::peer_access_test
