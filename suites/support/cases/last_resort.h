// SPDX-License-Identifier: MIT
// last_resort.h: an error handler that resets its device and exits, and failing paths whose reset is something else.
#pragma once

#include "suites/support/cases/deficits.h"

namespace cuaudit::testing {

enum class Resort {
  Resets,          // resets the device
  ResetsAndDrops,  // resets it and releases its reference, as cudaDeviceReset does
  TearsDown,       // wrong: the fault-free run ends with a reset, too, at another place
  FreesBefore,     // wrong: frees a block before it
  GoesOn,          // wrong: another call comes between the reset and the release
  DropsAnother,    // wrong: releases the reference of another device behind it, and resets again
};

// A stream, which the fault-free run destroys and no failing run does.
template <Resort how>
Trace ResetsItsDevice(Run run) {
  const bool fails = run != Run::FaultFree;
  Trace t;
  t.Retain().Stack(101);
  t.CreateStream(0x10).Stack(102);
  if (how == Resort::DropsAnother) t.Retain(0xd0, 1).Stack(103);
  if (how == Resort::FreesBefore) t.Alloc(0x1000).Stack(104);
  Step graph = t.Call(driver::CallId::GraphCreate).Stack(105);
  if (fails) graph.Refused();
  if (!fails) graph.Out(0, 0x90);
  if (!fails) t.Call(driver::CallId::GraphDestroy).In(0, 0x90).Stack(106);
  if (!fails) t.DestroyStream(0x10).Stack(107);
  if (how == Resort::FreesBefore) t.Free(0x1000).Stack(108);
  const auto reset = [&t](std::uint32_t stack) { t.Call(driver::CallId::DevicePrimaryCtxReset_v2).In(0, 0).Stack(stack); };
  if (fails || how == Resort::TearsDown) reset(fails ? 109 : 114);
  if (how == Resort::GoesOn) t.Call(driver::CallId::DeviceGetCount).Stack(110);
  if (how == Resort::DropsAnother) t.ReleasePrimary(1).Stack(111);
  if (fails && how == Resort::DropsAnother) reset(113);
  if (!fails || how != Resort::Resets) t.ReleasePrimary().Stack(112);
  t.Event(faults::ProcessEvent::Exit);
  return t;
}

}  // namespace cuaudit::testing
