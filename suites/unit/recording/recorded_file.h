// SPDX-License-Identifier: MIT
// recorded_file.h: a recording in a file of its own, written by the test itself, and its bytes to be changed and read.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "faults/driver/call_id.h"
#include "faults/journal/journal.h"
#include "faults/journal/journal_file.h"
#include "faults/journal/recording.h"
#include "harness/recording/recording.h"

namespace cuaudit::harness::recording_test {

using namespace cuaudit::faults;

inline constexpr auto kMake = static_cast<std::uint16_t>(driver::CallId::EventCreate);
inline constexpr auto kCopy = static_cast<std::uint16_t>(driver::CallId::MemcpyHtoD_v2);

// The bytes of a file in memory that is aligned for its rows.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : size_(bytes.size()), words_(std::make_unique<std::uint64_t[]>(size_ / 8 + 1)) {
    std::memcpy(words_.get(), bytes.data(), size_);
  }
  char* data() { return reinterpret_cast<char*>(words_.get()); }
  std::size_t size() const { return size_; }
  JournalHeader& header() { return *reinterpret_cast<JournalHeader*>(words_.get()); }

 private:
  std::size_t size_;
  std::unique_ptr<std::uint64_t[]> words_;
};

class File {
 public:
  explicit File(std::size_t slots = 64, std::uint32_t window = 0) {
    const int file = mkstemp(path_);
    EXPECT_GE(file, 0);
    close(file);
    JournalOptions options = {.record_capacity = slots, .recording = true, .window = window, .tool_version = "1.2.3"};
    EXPECT_EQ(CreateJournal(path_, options), nullptr);
    EXPECT_EQ(journal.Open(path_), nullptr);
  }
  ~File() { unlink(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string Read() const {
    std::string bytes;
    const int file = open(path_, O_RDONLY | O_CLOEXEC);
    char block[1 << 16];
    for (ssize_t got = 0; (got = read(file, block, sizeof(block))) > 0;) bytes.append(block, static_cast<std::size_t>(got));
    close(file);
    return bytes;
  }
  const char* path() const { return path_; }

  Journal journal;

 private:
  char path_[32] = "/tmp/cuaudit-recording-XXXXXX";
};

inline Record* Begin(Journal* journal, std::uint16_t call, std::uint64_t value) {
  Record* const record = journal->Begin(IsPassing(RecordKind::Call, call));
  if (record == nullptr) return nullptr;
  record->kind = RecordKind::Call;
  record->call = call;
  record->argument[0] = value;
  journal->Entered(record);
  return record;
}

inline void Append(Journal* journal, std::uint16_t call, std::uint64_t value) {
  Record* const record = Begin(journal, call, value);
  ASSERT_NE(record, nullptr);
  journal->Finish(record);
}

// What a reader makes of these bytes; nothing when they are refused.
inline Recording ReadBytes(std::string_view text) {
  Bytes bytes(text);
  JournalView view;
  const char* const wrong = view.Open(bytes.data(), bytes.size());
  EXPECT_EQ(wrong, nullptr) << wrong;
  return wrong == nullptr ? ReadRecording(view) : Recording();
}

inline std::string Packed(std::string_view text) {
  Bytes bytes(text);
  JournalView view;
  EXPECT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  return PackRecording(view, ReadRecording(view));
}

}  // namespace cuaudit::harness::recording_test
