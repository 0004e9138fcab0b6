// SPDX-License-Identifier: MIT
#include "faults/journal/page_guard.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace cuaudit::faults {

bool Populate(void* address, std::size_t bytes) noexcept {
  constexpr std::uintptr_t kPage = 4096;
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(address) / kPage * kPage;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(address) + bytes + kPage - 1) / kPage * kPage;
  const int saved = errno;
  const bool done = madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE) == 0 || errno == EINVAL || errno == ENOSYS;
  errno = saved;
  return done;
}

}  // namespace cuaudit::faults
