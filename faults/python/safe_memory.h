// SPDX-License-Identifier: MIT
// safe_memory.h: reads memory of this process that may not be there, or may be freed by another thread while it is read.
//
//   Owns      a few blocks that it has read, so that neighbouring fields cost one system call. One object serves one moment.
//   Errors    Read answers false when any byte cannot be read. errno stays as it was.
//   Source    process_vm_readv on this process, which needs no permission. Where a sandbox forbids it, every Read fails.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace cuaudit::python {

class SafeMemory {
 public:
  SafeMemory() noexcept;
  ~SafeMemory();
  SafeMemory(const SafeMemory&) = delete;
  SafeMemory& operator=(const SafeMemory&) = delete;

  [[nodiscard]] bool Read(std::uintptr_t from, void* to, std::size_t bytes) noexcept;
  template <typename T>
  [[nodiscard]] bool Read(std::uintptr_t from, T* to) noexcept {
    return Read(from, to, sizeof(T));
  }

 private:
  static constexpr std::size_t kBlock = 512;  // a power of two below the size of a page
  static constexpr std::size_t kBlocks = 4;
  const char* Block(std::uintptr_t start) noexcept;

  pid_t pid_;
  int errno_;
  std::size_t oldest_ = 0;
  std::uintptr_t start_[kBlocks] = {};  // 0: empty
  char bytes_[kBlocks][kBlock];
};

}  // namespace cuaudit::python
