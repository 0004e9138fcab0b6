// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/python/safe_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cuaudit::python {

SafeMemory::SafeMemory() noexcept : errno_(errno) {}
SafeMemory::~SafeMemory() { errno = errno_; }

bool SafeMemory::Read(std::uintptr_t from, void* to, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  const std::uintptr_t last = from + bytes - 1;
  if (last < from) return false;
  for (std::uintptr_t page = from & ~(kPage - 1);; page += kPage) {
    if (!Readable(page)) return false;
    if (page == (last & ~(kPage - 1))) break;
  }
  memcpy(to, reinterpret_cast<const void*>(from), bytes);  // NOLINT(performance-no-int-to-ptr)
  return true;
}

bool SafeMemory::Readable(std::uintptr_t page) noexcept {
  const std::size_t kept = known_ < kPages ? known_ : kPages;
  for (std::size_t i = 0; i < kept; ++i) {
    if (page_[i] == page) return true;
  }
  constexpr int kNoRequest = -1;
  constexpr std::size_t kMaskBytes = 8;
  if (page == 0 || syscall(SYS_rt_sigprocmask, kNoRequest, page, nullptr, kMaskBytes) == 0 || errno != EINVAL) return false;
  page_[known_++ % kPages] = page;
  return true;
}

}  // namespace cuaudit::python
