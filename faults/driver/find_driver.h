// SPDX-License-Identifier: MIT
// find_driver.h: where the genuine libcuda.so.1 lies, found without running another program.
//
//   Owns      nothing.
//   Threads   safe; reads the file system each time.
//   Errors    false when there is none; never a guess.
//   Faults    makes no driver calls and loads nothing.
//   Source    the loader's own order: search directories (LD_LIBRARY_PATH among them, from dlinfo), then the cache file in glibc's
//             "glibc-ld.so.cache1.1" format, then the directories that container and WSL installations use.
#pragma once

#include <cstddef>

namespace cuaudit::driver {

// `exclude`: a file that is not to be found, compared by device and inode (the drop-in itself); null for none.
// On success `path` is the resolved absolute path.
[[nodiscard]] bool FindGenuineDriver(const char* exclude, char* path, std::size_t capacity) noexcept;

// The same for a given cache file's content, so that it can be tested: the path of `soname` for this architecture.
[[nodiscard]] const char* FindInLoaderCache(const void* bytes, std::size_t size, const char* soname) noexcept;

}  // namespace cuaudit::driver
