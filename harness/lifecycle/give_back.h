// SPDX-License-Identifier: MIT
// give_back.h: what a trial left on the one genuine driver of the process is given back before the next trial, as a new simulated world
// would not have it.
//
//   Threads   one thread, while no other calls the driver.
//   Units     objects.
//   Errors    what could not be given back is counted by kind and stays until the process ends.
//   Faults    the release calls of the kinds, on `driver` itself: not recorded, never failed.
//   Source    ours; faults/driver/effects.def for which call releases what.
#pragma once

#include <cstdint>

#include "faults/driver/driver_ref.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

// Newest first. `context` is current while it works. Answers how many objects stay.
std::uint32_t GiveBack(driver::DriverRef driver, CUcontext context, const Ledger& ledger);

// No context is current to this thread any more.
void EmptyContextStack(driver::DriverRef driver);

// This thread's captures forbid what they do by default. What a trial left decides which calls the next one makes.
void PutBackCaptureMode(driver::DriverRef driver);

}  // namespace cuaudit::harness
