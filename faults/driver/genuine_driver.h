// SPDX-License-Identifier: MIT
// genuine_driver.h: finds the genuine libcuda.so.1 without running another program and without loading anything, and opens it as a
// DriverRef.
//
// The library is opened by absolute path, so that it coexists with a drop-in of the same SONAME. It stays open for the rest of the
// process, because libcuda must not be unloaded while its threads run. Opening makes no driver call. Every call is forwarded unchanged;
// an entry point that the driver lacks returns CUDA_ERROR_NOT_SUPPORTED. Open a driver once; afterwards it is immutable.
#pragma once

#include <cstddef>

#include "faults/driver/driver_ref.h"

namespace cuaudit::driver {

// Finds the genuine libcuda.so.1 without running another program and without loading anything.
//
// The search follows the loader's order: the search directories (from dlinfo, including LD_LIBRARY_PATH), then the cache file in glibc's
// "glibc-ld.so.cache1.1" format. Then come the directories that container and WSL installations use. Each call reads the file system.

// `exclude`: a file to pass over, compared by device and inode (the drop-in itself); null for none.
// On success `path` is the resolved absolute path. Returns false when there is no driver.
[[nodiscard]] bool FindGenuineDriver(const char* exclude, char* path, std::size_t capacity) noexcept;

// Path of `soname` for this architecture in the content of a loader cache; null when it is not there. Exported for tests.
[[nodiscard]] const char* FindInLoaderCache(const void* bytes, std::size_t size, const char* soname) noexcept;

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
