// SPDX-License-Identifier: MIT
// genuine_driver.h: the vendor's libcuda behind a DriverRef.
//
//   Owns      the dlopen reference, for the rest of the process: libcuda must not be unloaded while its threads run.
//   Threads   Open once; afterwards immutable.
//   Errors    OpenGenuineDriver answers a static phrase. An entry point that this driver lacks answers CUDA_ERROR_NOT_SUPPORTED.
//   Faults    forwards every call unchanged; opening makes no driver call.
//   Source    opened by absolute path, so it coexists with a drop-in of the same SONAME.
#pragma once

#include <cstddef>

#include "faults/driver/driver_ref.h"

namespace cuaudit::driver {

struct GenuineDriver {
  void* handle = nullptr;
  void* symbol[kCallCount] = {};  // null where the driver has no such export
};

// Null on success, otherwise what went wrong.
[[nodiscard]] const char* OpenGenuineDriver(const char* path, GenuineDriver* driver) noexcept;

DriverRef Driver(GenuineDriver* driver) noexcept;

// The entry point whose export stands at `address` in that driver, or kCallCount.
std::size_t FindSymbol(const GenuineDriver& driver, const void* address) noexcept;

}  // namespace cuaudit::driver
