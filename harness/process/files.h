// SPDX-License-Identifier: MIT
// files.h: maps or reads whole files, and writes files so that a reader sees all of the content or none.
//
//   Owns      SparseFile and SharedFile unmap their mappings, FileDescriptor closes its descriptor. While a SharedFile is open, SIGBUS has a
//             handler.
//   Errors    Status with the path and the system's message. No half-written file ever has the final name.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "harness/process/status.h"

namespace cuaudit::harness {

// The signals by which a user ends a command, and a wait of WriteAll: SIGINT, SIGTERM and SIGHUP. Left out is what this process was told
// to ignore (nohup; a shell's background): blocked, it would arrive. Any thread.
sigset_t EndingSignals();

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    const FileDescriptor before(std::exchange(fd_, std::exchange(other.fd_, -1)));  // is closed
    return *this;
  }
  ~FileDescriptor();

  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

// A copy of a sparse file in memory, as it was when it was opened. Only written ranges are read: touching a mapped hole would take storage
// from the file system, and on a full file system that is a SIGBUS.
class SparseFile {
 public:
  static Result<SparseFile> Open(const std::string& path);

  const void* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return data_ == nullptr ? 0 : data_.get_deleter().size; }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(void* data) const noexcept;
  };
  std::unique_ptr<void, Unmap> data_;
};

// A file that a program can write to, mapped. When the program cuts it, what lay behind its end reads as zeros.
class SharedFile {
 public:
  SharedFile() = default;
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  // False: errno says why.
  bool Open(const std::string& path, bool writable);
  std::span<char> bytes() const noexcept { return bytes_; }
  // True when the file has another size than when it was opened.
  bool Resized() const;

 private:
  FileDescriptor file_;
  std::span<char> bytes_;
};

// A regular file: a pipe or a device could block for ever, or have no end. `most_mib`: larger files are refused; 0: none is.
Result<std::string> ReadFile(const std::string& path, std::uint64_t most_mib = 0);

inline constexpr std::size_t kQuotedLines = 10;  // lines of a program's output that an error message quotes

// At most `count` last lines of a text file, each with its line feed, unchanged; empty when there is nothing to read.
std::string LastLines(const std::string& path, std::size_t count);

// How long a full pipe may stay full. A reader that takes its time (a pager) still gets everything.
inline constexpr std::chrono::milliseconds kForEver{-1};
inline constexpr std::chrono::milliseconds kPatience = std::chrono::minutes(5);

// Writes to a temporary file in the same directory and renames it. `on_failure` is the exit code when the place is not writable. A new file
// gets `mode` without the bits of the umask; one that is there keeps its own. Of a named pipe see WriteAll.
Status WriteFile(const std::string& path, std::string_view bytes, Exit on_failure, mode_t mode = 0666,
                 std::chrono::milliseconds patience = kPatience);

// Opens the named pipe `path` for the next WriteFile, before the work whose result goes there: an error when nobody reads from it. It stays
// open until then, because its reader takes closing it for the end. Of another sort of file, or where there is none, nothing happens.
Status OpenPipe(const std::string& path);

// The system's message for an error number. For a file above the size limit the message names the limit.
std::string SystemWords(int error);

// Writes all bytes. A pipe, a terminal or a socket that is full is waited for: until its reader has taken nothing for `patience`, which is
// an error, or until one of the EndingSignals arrives that is blocked (SignalsTaken); then the exit code is that of the signal,
// and no later call waits: stderr may be the same pipe.
Status WriteAll(int fd, std::string_view bytes, const std::string& path, std::chrono::milliseconds patience = kForEver);

// Writes all bytes, or none when that might have to wait, or would fill more than one of `parts` of a pipe whose reader takes nothing: the
// rest is kept for what must be said. False when not all was written.
bool WriteInPassing(int fd, std::string_view bytes, std::size_t parts);

}  // namespace cuaudit::harness
