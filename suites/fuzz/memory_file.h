// SPDX-License-Identifier: MIT
// memory_file.h: a file with given content that is on no disk, for functions that take a path.
//
// When there is no memory the process ends, because that says nothing about the fuzz target.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text) : file_(memfd_create("input", MFD_CLOEXEC)) {
    Require(file_ >= 0 && write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "there is room for a file");
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace cuaudit::fuzz
