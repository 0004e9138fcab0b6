// SPDX-License-Identifier: MIT
// find_driver.h: finds the genuine libcuda.so.1 without running another program and without loading anything.
//
// The search follows the loader's order: the search directories (from dlinfo, including LD_LIBRARY_PATH), then the cache file in glibc's
// "glibc-ld.so.cache1.1" format. Then come the directories that container and WSL installations use. Each call reads the file system.
#pragma once

#include <cstddef>

namespace cuaudit::driver {

// `exclude`: a file to pass over, compared by device and inode (the drop-in itself); null for none.
// On success `path` is the resolved absolute path. Returns false when there is no driver.
[[nodiscard]] bool FindGenuineDriver(const char* exclude, char* path, std::size_t capacity) noexcept;

// Path of `soname` for this architecture in the content of a loader cache; null when it is not there. Exported for tests.
[[nodiscard]] const char* FindInLoaderCache(const void* bytes, std::size_t size, const char* soname) noexcept;

}  // namespace cuaudit::driver
