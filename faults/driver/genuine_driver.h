// SPDX-License-Identifier: MIT
// genuine_driver.h: the vendor's libcuda behind a DriverRef.
//
// The library is opened by absolute path, so that it coexists with a drop-in of the same SONAME. It stays open for the rest of the
// process, because libcuda must not be unloaded while its threads run. Opening makes no driver call. Every call is forwarded unchanged;
// an entry point that the driver lacks returns CUDA_ERROR_NOT_SUPPORTED. Open a driver once; afterwards it is immutable.
#pragma once

#include <cstddef>

#include "faults/driver/driver_ref.h"

namespace cuaudit::driver {

struct GenuineDriver {
  void* handle = nullptr;
  void* symbol[kCallCount] = {};  // null where the driver has no such export
};

// Returns null on success, otherwise a static phrase that says what went wrong.
[[nodiscard]] const char* OpenGenuineDriver(const char* path, GenuineDriver* driver) noexcept;

DriverRef Driver(GenuineDriver* driver) noexcept;

// Index of the entry point that the driver exports at `address`, or kCallCount.
std::size_t FindSymbol(const GenuineDriver& driver, const void* address) noexcept;

}  // namespace cuaudit::driver
