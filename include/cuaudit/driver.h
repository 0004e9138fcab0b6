// SPDX-License-Identifier: MIT
// driver.h: the driver API as a value that code under test takes instead of calling libcuda by name.
//
//   DriverRef    two words, copied freely. driver.MemAlloc(&p, n) is cuMemAlloc, in the version that cuda.h's macros pick. Who holds one
//                cannot know whether the simulated driver, the genuine one or a gate that refuses calls stands behind it.
//   Owns      nothing.
//   Threads   as safe as the driver behind it.
//   Errors    CUresult exactly as the driver gave it.
//   Faults    every method is one driver call of the same name.
//   Source    generated from the CUDA toolkit's headers; the installed file is this one with all that it includes written out.
#pragma once

#include "faults/driver/driver_ref.h"

namespace cuaudit {

using DriverRef = driver::DriverRef;

}  // namespace cuaudit
