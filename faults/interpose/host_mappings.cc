// SPDX-License-Identifier: MIT
// Records the mappings that the program and its libraries make. Mappings that the C library makes for its heap and for stacks do not
// pass through these functions.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/interpose/host_state.h"

namespace cuaudit::faults {
namespace {

constexpr uint64_t kPage = 4096;
uint64_t Pages(size_t bytes) noexcept { return (bytes + kPage - 1) & ~(kPage - 1); }

// NOLINTNEXTLINE(performance-no-int-to-ptr): what the kernel answers
void* Answer(long result) noexcept { return reinterpret_cast<void*>(result); }

}  // namespace
}  // namespace cuaudit::faults

using namespace cuaudit::faults;

#define CUAUDIT_WRAP(result, name, parameters)                                                       \
  extern "C" __attribute__((visibility("default"))) result wrapped_##name parameters __asm__(#name); \
  extern "C" result wrapped_##name parameters

// Uses system calls instead of the C library's functions, which do nothing else, because the wrapper may be called before a symbol can
// be looked up.
static void* Mapped(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  void* const memory = Answer(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
  if (memory != MAP_FAILED && Watching()) Write(HostCall::Map, Address(memory), Pages(bytes));
  return memory;
}

CUAUDIT_WRAP(void*, mmap, (void* address, size_t bytes, int protection, int flags, int file, off_t offset)) {
  return Mapped(address, bytes, protection, flags, file, offset);
}

CUAUDIT_WRAP(void*, mmap64, (void* address, size_t bytes, int protection, int flags, int file, off_t offset)) {
  return Mapped(address, bytes, protection, flags, file, offset);
}

CUAUDIT_WRAP(int, munmap, (void* address, size_t bytes)) {
  Record* record = Watching() ? Reserve(HostCall::Unmap, Address(address), Pages(bytes)) : nullptr;
  const int result = static_cast<int>(syscall(SYS_munmap, address, bytes));
  if (result == 0) {
    Finish(record);
  } else {
    Withdraw(record);
  }
  return result;
}

CUAUDIT_WRAP(void*, mremap, (void* address, size_t bytes, size_t wanted, int flags, ...)) {
  void* where = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list list;
    va_start(list, flags);
    where = va_arg(list, void*);
    va_end(list);
  }
  // mremap from zero bytes makes a second mapping of shared memory, and the first one stays.
  Record* record = Watching() && bytes != 0 ? Reserve(HostCall::Unmap, Address(address), Pages(bytes)) : nullptr;
  void* const memory = Answer(syscall(SYS_mremap, address, bytes, wanted, flags, where));
  if (memory == MAP_FAILED) {
    Withdraw(record);
    return memory;
  }
  Finish(record);
  if (Watching()) Write(HostCall::Map, Address(memory), Pages(wanted));
  return memory;
}
