// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/python/safe_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

namespace cuaudit::python {

SafeMemory::SafeMemory() noexcept : pid_(getpid()), errno_(errno) {}
SafeMemory::~SafeMemory() { errno = errno_; }

bool SafeMemory::Read(std::uintptr_t from, void* to, std::size_t bytes) noexcept {
  char* out = static_cast<char*>(to);
  while (bytes != 0) {
    const std::uintptr_t start = from & ~std::uintptr_t{kBlock - 1};
    const char* const block = Block(start);
    if (block == nullptr) return false;
    const std::size_t left = start + kBlock - from;
    const std::size_t count = bytes < left ? bytes : left;
    memcpy(out, block + (from - start), count);
    out += count;
    from += count;
    bytes -= count;
  }
  return true;
}

const char* SafeMemory::Block(std::uintptr_t start) noexcept {
  if (start == 0) return nullptr;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (start_[i] == start) return bytes_[i];
  }
  const std::size_t at = oldest_;
  oldest_ = (oldest_ + 1) % kBlocks;
  start_[at] = 0;
  const iovec here = {bytes_[at], kBlock};
  const iovec there = {reinterpret_cast<void*>(start), kBlock};  // NOLINT(performance-no-int-to-ptr): an address that may be wrong
  if (process_vm_readv(pid_, &here, 1, &there, 1, 0) != static_cast<ssize_t>(kBlock)) return nullptr;
  start_[at] = start;
  return bytes_[at];
}

}  // namespace cuaudit::python
