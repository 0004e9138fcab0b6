// SPDX-License-Identifier: MIT
// give_back.h: releases what a trial left on the one genuine driver of the process, so that the next trial starts without it, as in a new
// simulated world.
//
//   Threads   one thread, while no other thread calls the driver.
//   Units     objects.
//   Errors    objects that cannot be released are counted and stay until the process ends.
//   Faults    makes the release calls on `driver` itself: they are not recorded and never fail by plan.
//   Source    faults/driver/effects.def says which call releases what.
#pragma once

#include <cstdint>

#include "faults/driver/driver_ref.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

// Releases the newest object first, with `context` as the current context. Answers how many objects stay.
std::uint32_t GiveBack(driver::DriverRef driver, CUcontext context, const Ledger& ledger);

// Pops every context of this thread's stack.
void EmptyContextStack(driver::DriverRef driver);

// Sets this thread's capture mode to the default. A mode that a trial left decides which calls the next trial may make.
void PutBackCaptureMode(driver::DriverRef driver);

}  // namespace cuaudit::harness
