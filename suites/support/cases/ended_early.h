// SPDX-License-Identifier: MIT
// ended_early.h: a primary context that a helper releases once too often while its caller still works there.
#pragma once

#include "suites/support/cases/deficits.h"

namespace cuaudit::testing {

// The caller goes on with its stream or memory, in a context that was released once too often. The caller's calls are not told beside the
// cause.
enum class Goes { OnAndReleases, StraightToItsReleases, AstrayOnAnotherDevice };
template <Goes goes>
Trace GoesOnInAContextThatEnded(Run run) {
  Trace t;
  t.Retain().Stack(101);
  t.CreateStream(0x10).Stack(110);
  t.Alloc(0x2000).Stack(111);
  t.Retain().Stack(102);
  Step event = t.Call(driver::CallId::EventCreate).Out(0, 0x30).Stack(104);
  if (run != Run::FaultFree) event.Refused();
  if (run == Run::FaultFree) t.Call(driver::CallId::EventDestroy_v2).In(0, 0x30).Stack(105);
  if (run != Run::FaultFree) t.ReleasePrimary().Stack(106);
  if (run != Run::Right) t.ReleasePrimary().Stack(103);
  const auto late = [&](Step step, CUresult answer) {
    if (run == Run::Wrong) step.Fails(answer);
  };
  if (goes != Goes::StraightToItsReleases)
    late(t.Call(driver::CallId::StreamSynchronize).In(0, 0x10).Stack(112), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  late(t.Free(0x2000).Stack(113), CUDA_ERROR_INVALID_CONTEXT);
  late(t.DestroyStream(0x10).Stack(114), CUDA_ERROR_INVALID_CONTEXT);
  late(t.ReleasePrimary().Stack(109), CUDA_ERROR_INVALID_CONTEXT);
  if (goes == Goes::AstrayOnAnotherDevice) {
    t.Retain(0xc1, 1).Stack(120);
    t.CreateStream(0x11).Context(0xc1).Stack(121);
    if (run != Run::Wrong) t.DestroyStream(0x11).Context(0xc1).Stack(122);
    t.ReleasePrimary(1).Stack(123);
    if (run == Run::Wrong) late(t.DestroyStream(0x11).Context(0xc1).Stack(122), CUDA_ERROR_INVALID_CONTEXT);
  }
  return t;
}

// A fallback works in a context of its own reference, and sets memory after it has given that back. Before it the failing path has released
// the primary context once too often: with nothing left to take, or under its caller, who works there still.
enum class Before { NothingWasLeft, TheCallerWasInIt };
template <Before before>
Trace AFallbackUsesWhatItReleased(Run run) {
  Trace t;
  const bool called = before == Before::TheCallerWasInIt;
  if (called) t.Retain().Stack(101);
  if (called) t.Alloc(0x2000).Stack(111);
  t.Retain().Stack(102);
  Step event = t.Call(driver::CallId::EventCreate).Out(0, 0x30).Stack(104);
  if (run != Run::FaultFree) event.Refused();
  if (run == Run::FaultFree) t.Call(driver::CallId::EventDestroy_v2).In(0, 0x30).Stack(105);
  t.ReleasePrimary().Stack(103);
  if (run != Run::FaultFree) {
    Step too_many = t.ReleasePrimary().Stack(106);
    if (!called) too_many.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  if (called) {
    Step late = t.Free(0x2000).Stack(113);
    if (run != Run::FaultFree) late.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  if (run != Run::FaultFree) {
    t.Retain().Stack(115);
    t.Alloc(0x5000).Stack(116);
    t.ReleasePrimary().Stack(118);
    t.Call(driver::CallId::MemsetD8_v2).In(0, 0x5000).Stack(119).Fails(CUDA_ERROR_INVALID_VALUE);
  }
  if (called) {
    Step last = t.ReleasePrimary().Stack(109);
    if (run != Run::FaultFree) last.Fails(CUDA_ERROR_INVALID_CONTEXT);
  }
  return t;
}

}  // namespace cuaudit::testing
