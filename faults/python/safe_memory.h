// SPDX-License-Identifier: MIT
// safe_memory.h: reads memory of this process that may not be there.
//
//   Owns      a list of the pages that it found readable. One object serves one moment: what a thread reads of its own stays, and what
//             others may free in the meantime is asked for anew the next time.
//   Errors    Read answers false when a byte lies in no readable page. errno stays as it was.
//   Source    a system call that copies from an address answers EFAULT instead of raising a signal; rt_sigprocmask reads the new mask before
//             it refuses an unknown request, so that it changes nothing. It costs a tenth of process_vm_readv, and no sandbox forbids it.
#pragma once

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
  static constexpr std::uintptr_t kPage = 4096;  // the smallest that there is
  static constexpr std::size_t kPages = 32;
  bool Readable(std::uintptr_t page) noexcept;

  int errno_;
  std::size_t known_ = 0;  // pages found readable; the last kPages of them are kept
  std::uintptr_t page_[kPages];
};

}  // namespace cuaudit::python
