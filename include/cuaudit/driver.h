// SPDX-License-Identifier: MIT
// driver.h: the driver API as a value. Code under test takes a DriverRef instead of calling libcuda by name.
//
//     CUresult Pool::Grow(cuaudit::DriverRef driver) { return driver.MemAlloc(&block_, bytes_); }  // cuMemAlloc
//
// A DriverRef is two pointers and is copied freely. Each method is one driver call of the same name without "cu", in the version that
// the macros of cuda.h choose, and returns the driver's CUresult unchanged. The code cannot tell whether the simulated driver, the
// genuine driver or a gate that refuses calls answers. A DriverRef is as thread-safe as the driver behind it. The methods are generated
// from the headers of the CUDA toolkit. The installed driver.h has everything that this file includes written out.
#pragma once

#include "faults/driver/driver_ref.h"

namespace cuaudit {

using DriverRef = driver::DriverRef;

}  // namespace cuaudit
