// SPDX-License-Identifier: MIT
// peer_access.h: programs that enable peer access from one context to another, which a failing path forgets or takes from somebody else;
// and their repaired twins (`right`).
#pragma once

#include "suites/support/cases/deficits.h"

namespace cuaudit::testing {

inline constexpr std::uint64_t kFirstPrimary = 0xa0;  // of device 0
inline constexpr std::uint64_t kPeerPrimary = 0xa1;   // of device 1
inline constexpr std::uint64_t kOwnPeer = 0xb1;       // a context that the program makes on device 1

inline Step EnablePeer(Trace* t, std::uint64_t context, std::uint64_t peer) {
  return t->Call(driver::CallId::CtxEnablePeerAccess).In(0, peer).Context(context);
}
inline Step DisablePeer(Trace* t, std::uint64_t context, std::uint64_t peer) {
  return t->Call(driver::CallId::CtxDisablePeerAccess).In(0, peer).Context(context);
}
inline Step SetCurrent(Trace* t, std::uint64_t from, std::uint64_t to) {
  return t->Call(driver::CallId::CtxSetCurrent).In(0, to).Context(from);
}

// Two primary contexts get access to each other. When the second direction is refused, the first one stays.
inline Trace EnablesBothWays(Run run) {
  Trace t;
  t.Retain(kFirstPrimary, 0).Stack(101);
  t.Retain(kPeerPrimary, 1).Stack(102);
  SetCurrent(&t, 0, kFirstPrimary).Stack(103);
  EnablePeer(&t, kFirstPrimary, kPeerPrimary).Stack(104);
  SetCurrent(&t, kFirstPrimary, kPeerPrimary).Stack(105);
  Step second = EnablePeer(&t, kPeerPrimary, kFirstPrimary).Stack(106);
  if (run == Run::FaultFree) DisablePeer(&t, kPeerPrimary, kFirstPrimary).Stack(107);
  if (run != Run::FaultFree) second.Refused();
  if (run != Run::Wrong) SetCurrent(&t, kPeerPrimary, kFirstPrimary).Stack(108);
  if (run != Run::Wrong) DisablePeer(&t, kFirstPrimary, kPeerPrimary).Stack(109);
  SetCurrent(&t, run == Run::Wrong ? kPeerPrimary : kFirstPrimary, 0).Stack(110);
  t.ReleasePrimary(1).Stack(111);
  t.ReleasePrimary(0).Stack(112);
  return t;
}

// A library gives its caller's context access to another device, and returns early when its work fails.
inline Trace LeavesTheCallersContextWithAccess(Run run) {
  Trace t;
  t.Retain(kPeerPrimary, 1).Stack(101);
  EnablePeer(&t, kCallers, kPeerPrimary).Stack(104);
  FailsToAllocate(&t, run);
  if (run != Run::Wrong) DisablePeer(&t, kCallers, kPeerPrimary).Stack(105);
  t.ReleasePrimary(1).Stack(106);
  return t;
}

// Access to three peers in a row. When the third one is refused, only the newest of the others is undone.
inline Trace UndoesOnlyTheNewest(Run run) {
  constexpr std::uint64_t kPeers[] = {0xe1, 0xe2, 0xe3};
  Trace t;
  EnablePeer(&t, kCallers, kPeers[0]).Stack(102);
  EnablePeer(&t, kCallers, kPeers[1]).Stack(102);
  Step third = EnablePeer(&t, kCallers, kPeers[2]).Stack(102);
  if (run == Run::FaultFree) {
    for (const std::uint64_t peer : kPeers) DisablePeer(&t, kCallers, peer).Stack(104);
    return t;
  }
  third.Refused();
  DisablePeer(&t, kCallers, kPeers[1]).Stack(103);
  if (run == Run::Right) DisablePeer(&t, kCallers, kPeers[0]).Stack(103);
  return t;
}

// The clean-up has to go to the context that has the access, and the plan refuses the way. Right: it disables all the same, and the driver
// declines. Wrong: it gives up.
inline Trace CannotGoBackToDisable(Run run) {
  Trace t;
  t.Retain(kPeerPrimary, 1).Stack(102);
  SetCurrent(&t, 0, kCallers).Stack(101);
  EnablePeer(&t, kCallers, kPeerPrimary).Stack(104);
  SetCurrent(&t, kCallers, kPeerPrimary).Stack(105);
  Step back = SetCurrent(&t, kPeerPrimary, kCallers).Stack(106);
  if (run != Run::FaultFree) back.Refused();
  if (run == Run::FaultFree) DisablePeer(&t, kCallers, kPeerPrimary).Stack(107);
  if (run == Run::Right) DisablePeer(&t, kPeerPrimary, kPeerPrimary).Stack(107).Fails(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  SetCurrent(&t, run == Run::FaultFree ? kCallers : kPeerPrimary, 0).Stack(108);
  t.ReleasePrimary(1).Stack(109);
  return t;
}

// When the second direction is refused, the failing path disables that one instead of the first. It gives back as often as it took, so
// nobody else misses anything.
inline Trace DisablesTheWrongDirection(Run run) {
  Trace t;
  EnablePeer(&t, kCallers, kPeerPrimary).Stack(104);
  Step second = EnablePeer(&t, kPeerPrimary, kCallers).Stack(105);
  if (run == Run::FaultFree) DisablePeer(&t, kPeerPrimary, kCallers).Stack(106);
  if (run != Run::FaultFree) second.Refused();
  if (run == Run::Wrong) DisablePeer(&t, kPeerPrimary, kCallers).Stack(107).Fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  if (run != Run::Wrong) DisablePeer(&t, kCallers, kPeerPrimary).Stack(108);
  return t;
}

// The caller has enabled the access, so the library's own call is declined. Its failing path disables what is the caller's.
inline Trace DisablesTheCallers(Run run) {
  Trace t;
  EnablePeer(&t, kCallers, kPeerPrimary).Stack(104);
  EnablePeer(&t, kCallers, kPeerPrimary).Stack(105).Fails(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  FailsToAllocate(&t, run);
  if (run == Run::Wrong) DisablePeer(&t, kCallers, kPeerPrimary).Stack(106);
  Step last = DisablePeer(&t, kCallers, kPeerPrimary).Stack(109);
  if (run == Run::Wrong) last.Fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  return t;
}

// One clean-up for all paths disables also what could not be enabled. A caller's access would be gone.
inline Trace DisablesWhatWasRefused(Run run) {
  Trace t;
  Step enable = EnablePeer(&t, kCallers, kPeerPrimary).Stack(101);
  if (run != Run::FaultFree) enable.Refused();
  if (run == Run::FaultFree) DisablePeer(&t, kCallers, kPeerPrimary).Stack(103);
  if (run == Run::Wrong) DisablePeer(&t, kCallers, kPeerPrimary).Stack(103).Fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  return t;
}

// The failing path disables, and so does the caller of the function that failed.
inline Trace DisablesTwice(Run run) {
  Trace t;
  EnablePeer(&t, kCallers, kPeerPrimary).Stack(101);
  Step alloc = t.Alloc(0x1000).Stack(104);
  if (run == Run::FaultFree) t.Free(0x1000).Stack(105);
  if (run != Run::FaultFree) alloc.Refused();
  if (run != Run::FaultFree) DisablePeer(&t, kCallers, kPeerPrimary).Stack(106);
  if (run == Run::FaultFree) DisablePeer(&t, kCallers, kPeerPrimary).Stack(103);
  if (run == Run::Wrong) DisablePeer(&t, kCallers, kPeerPrimary).Stack(103).Fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  return t;
}

// Peer access of the primary context, enabled in the view of a green context, and disabled in the primary context or not at all.
inline Trace EnablesInAView(bool disables) {
  constexpr std::uint64_t kGreen = 0x60;
  constexpr std::uint64_t kView = 0x61;
  Trace t;
  t.Retain(kCallers, 0);
  t.Call(driver::CallId::GreenCtxCreate).Out(0, kGreen).In(2, 0).Context(kCallers);
  t.Call(driver::CallId::CtxFromGreenCtx).Out(0, kView).In(1, kGreen);
  EnablePeer(&t, kView, kPeerPrimary);
  if (disables) DisablePeer(&t, kCallers, kPeerPrimary);
  t.Call(driver::CallId::GreenCtxDestroy).In(0, kGreen).Context(kCallers);
  t.ReleasePrimary(0);
  return t;
}

}  // namespace cuaudit::testing
