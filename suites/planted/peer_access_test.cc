// SPDX-License-Identifier: MIT
// Peer access that a failing path leaves enabled in a context of somebody else, or takes from somebody else. The right twins are in
// suites/positive/peer_access_test.cc.
#include "suites/support/cases/peer_access.h"

namespace cuaudit::testing::peer_access_test {
namespace {

using driver::Kind;
using harness::Rule;
using ::testing::ElementsAre;

// The one finding. `stack`: the acquisition of what is lost, or the call that gives too much.
template <typename Program>
void ExpectFound(const Program& program, Rule rule, std::uint32_t stack) {
  const CaseRow row(Kind::PeerAccess);
  const harness::Judgement judgement = JudgeProgram(program, false);
  ASSERT_EQ(judgement.findings.size(), 1U);
  const harness::TrialFinding& one = judgement.findings[0];
  EXPECT_EQ(one.rule, rule);
  EXPECT_EQ(one.kind, Kind::PeerAccess);
  EXPECT_EQ(one.count, 1U);
  EXPECT_EQ(rule == Rule::Deficit ? one.where.stack : one.acquired.stack, stack);
}

CUAUDIT_CASE(Orphaned, PeerAccessOfTheFirstWhenTheSecondIsRefused) { ExpectFound(EnablesBothWays, Rule::Orphaned, 104); }
CUAUDIT_CASE(Leak, PeerAccessInTheCallersContext) { ExpectFound(LeavesTheCallersContextWithAccess, Rule::Leak, 104); }
CUAUDIT_CASE(Leak, PeerAccessToTheOlderOfTwo) { ExpectFound(UndoesOnlyTheNewest, Rule::Leak, 102); }

CUAUDIT_CASE(Leak, PeerAccessWhoseContextCouldNotBeMadeCurrent) { ExpectFound(CannotGoBackToDisable, Rule::Leak, 104); }

CUAUDIT_CASE(Leak, PeerAccessDisabledInTheWrongDirection) { ExpectFound(DisablesTheWrongDirection, Rule::Leak, 104); }

// Either context of the pair tells one access from another.
CUAUDIT_CASE(Leak, PeerAccessOfAnotherPair) {
  const CaseRow row(Kind::PeerAccess);
  Trace t;
  EnablePeer(&t, 0xa, 0xb);
  EnablePeer(&t, 0xb, 0xa);
  EnablePeer(&t, 0xa, 0xc);
  EnablePeer(&t, 0xb, 0xc);
  DisablePeer(&t, 0xa, 0xb);
  DisablePeer(&t, 0xb, 0xa);
  DisablePeer(&t, 0xb, 0xc);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("peer_access 1"));
}

CUAUDIT_CASE(Orphaned, PeerAccessEnabledInTheViewOfAGreenContext) {
  const CaseRow row(Kind::PeerAccess);
  EXPECT_THAT(Left(EnablesInAView(false).Fold()), ElementsAre("peer_access 1 orphaned"));
}

// Only the destruction of its context would have ended it, and the program left that context alive.
CUAUDIT_CASE(Leak, PeerAccessOfAContextThatIsLeftToo) {
  const CaseRow row(Kind::PeerAccess);
  Also(Rule::Leak, Kind::Context);
  Trace t;
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kOwnPeer).Context(0);
  EnablePeer(&t, kOwnPeer, kFirstPrimary);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("context 1", "peer_access 1"));
}

CUAUDIT_CASE(Deficit, PeerAccessThatTheCallerThenMisses) { ExpectFound(DisablesTheCallers, Rule::Deficit, 106); }
CUAUDIT_CASE(Deficit, PeerAccessThatCouldNotBeEnabled) { ExpectFound(DisablesWhatWasRefused, Rule::Deficit, 103); }
CUAUDIT_CASE(Deficit, PeerAccessDisabledTwice) { ExpectFound(DisablesTwice, Rule::Deficit, 106); }

CUAUDIT_CASE(UseAfterRelease, PeerAccessToADestroyedContext) {
  Trace t;
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kOwnPeer).Context(0);
  EnablePeer(&t, kFirstPrimary, kOwnPeer);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kOwnPeer).Context(kOwnPeer);
  DisablePeer(&t, kFirstPrimary, kOwnPeer).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release context")) << "told once, of the context";
}

CUAUDIT_CASE(UseAfterRelease, PeerAccessToADestroyedContextThatWasDisabledBefore) {
  Trace t;
  t.Call(driver::CallId::CtxCreate_v2).Out(0, kOwnPeer).Context(0);
  EnablePeer(&t, kFirstPrimary, kOwnPeer);
  DisablePeer(&t, kFirstPrimary, kOwnPeer);
  t.Call(driver::CallId::CtxDestroy_v2).In(0, kOwnPeer).Context(kOwnPeer);
  DisablePeer(&t, kFirstPrimary, kOwnPeer).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release context")) << "told once, of the context";
}

// The program was told that the first call had failed, and disables correctly. In the next cycle it enables twice, for a flag of its own.
CUAUDIT_CASE(NotRecovered, PeerAccessEnabledTwiceAfterItWasDisabled) {
  const auto cycles = [](bool faulted) {
    MarkedCycles all;
    for (const std::uint32_t cycle : {1U, 2U}) {
      all.Begin();
      const bool twice = faulted && cycle == 2;
      Step enable = EnablePeer(&all.trace, kCallers, kPeerPrimary).Stack(1).Cycle(cycle);
      if (faulted && cycle == 1) enable.After();
      if (twice) EnablePeer(&all.trace, kCallers, kPeerPrimary).Stack(3).Cycle(cycle).Fails(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
      DisablePeer(&all.trace, kCallers, kPeerPrimary).Stack(2).Cycle(cycle);
      all.End(!faulted ? CUDA_SUCCESS : cycle == 1 ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    }
    return all.trace;
  };
  const harness::Judgement judgement = Judge(cycles(false), cycles(true));
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::NotRecovered);
  EXPECT_EQ(judgement.findings[0].where.stack, 3U);
}

}  // namespace
}  // namespace cuaudit::testing::peer_access_test
