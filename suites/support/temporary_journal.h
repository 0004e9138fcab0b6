// SPDX-License-Identifier: MIT
// temporary_journal.h: a journal file in a temporary directory, both removed with the object.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "faults/journal/journal_file.h"
#include "faults/journal/journal_view.h"

namespace cuaudit::faults {

class TemporaryJournal {
 public:
  explicit TemporaryJournal(std::size_t capacity = 4096) {
    char directory[] = "/tmp/cuaudit-journal-XXXXXX";
    directory_ = ::mkdtemp(directory);
    path_ = directory_ + "/journal";
    const char* error = CreateJournal(path_.c_str(), {capacity, 16});
    EXPECT_EQ(error, nullptr) << error;
  }
  ~TemporaryJournal() {
    ::unlink(path_.c_str());
    ::rmdir(directory_.c_str());
  }
  TemporaryJournal(const TemporaryJournal&) = delete;
  TemporaryJournal& operator=(const TemporaryJournal&) = delete;

  const char* path() const { return path_.c_str(); }

  // The file as it is now, or its first `limit` bytes, in a heap block of exactly that size.
  std::vector<char> Bytes(std::size_t limit = ~std::size_t{0}) const {
    struct stat info = {};
    EXPECT_EQ(::stat(path_.c_str(), &info), 0);
    const std::size_t size = static_cast<std::size_t>(info.st_size) < limit ? static_cast<std::size_t>(info.st_size) : limit;
    std::vector<char> bytes(size);
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::pread(file, bytes.data(), size, 0), static_cast<ssize_t>(size));
    ::close(file);
    return bytes;
  }

 private:
  std::string directory_;
  std::string path_;
};

}  // namespace cuaudit::faults
