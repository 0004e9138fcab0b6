// SPDX-License-Identifier: MIT
// files.h: whole files: mapped read-only, read, or written so that a reader sees all of it or nothing.
//
//   Owns      SparseFile owns its mapping and unmaps it; FileDescriptor closes what it holds.
//   Threads   values; no shared state.
//   Errors    Status with the path and the system's own words; nothing is left half written under the final name.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "harness/sweep/status.h"

namespace cuaudit::harness {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

// The bytes of a file with holes, in memory, as they were when it was opened. Only what was written is read: a hole that is mapped and
// then touched would take storage from the file system, which on a full one is SIGBUS.
class SparseFile {
 public:
  static Result<SparseFile> Open(const std::string& path);

  SparseFile() = default;
  SparseFile(SparseFile&& other) noexcept;
  SparseFile& operator=(SparseFile&& other) noexcept;
  ~SparseFile();

  const void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

Result<std::string> ReadFile(const std::string& path);

inline constexpr std::size_t kQuotedLines = 10;  // of a program's output, where it explains an error

// At most `count` last lines of a text, each with its line feed, as they are; empty when there is nothing to read.
std::string LastLines(const std::string& path, std::size_t count);

// Writes to a temporary name in the same directory, then renames. `on_failure` is the exit code of an unwritable place.
Status WriteFile(const std::string& path, std::string_view bytes, Exit on_failure);

// The system's words for an error number; of a file over the limit on file sizes they name the limit.
std::string SystemWords(int error);

// All bytes in as few system calls as the kernel allows.
Status WriteAll(int fd, std::string_view bytes, const std::string& path);

}  // namespace cuaudit::harness
