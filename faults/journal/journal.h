// SPDX-License-Identifier: MIT
// journal.h: appends records to a journal file that the tool made. The file is readable at any moment, also after SIGKILL.
//
//   Owns      the mapping of the file, for the rest of the process, because exit handlers may write records. It keeps no file
//             descriptor, so a program that closes all of its descriptors loses nothing.
//   Threads   all threads of all processes that opened the same file may use Begin, Finish and the tables.
//   Errors    Open returns a static phrase. A full journal or disk drops records, counts them and raises kRecordsDropped; it never
//             stops or kills the program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/journal/layout.h"

namespace cuaudit::faults {

class Journal {
 public:
  [[nodiscard]] const char* Open(const char* path) noexcept;
  // Called in a process that was forked to take a fault: from here on it writes to `header`, a copy of the header at the fork, and to
  // `records`, which are zeroed. It still shares the tables of modules, call stacks and Python functions with its parent. The parent's
  // records are unmapped.
  void Continue(JournalHeader* header, Record* records) noexcept;
  // Uses a journal in memory. `memory` is formatted (journal_file.h), as large as its header says, and borrowed.
  void Adopt(void* memory) noexcept;
  bool is_open() const noexcept { return header_ != nullptr; }
  JournalHeader& header() noexcept { return *header_; }
  ModuleRow* modules() noexcept { return modules_; }
  StackRow* stacks() noexcept { return stacks_; }
  PythonRow* python() noexcept { return python_; }
  // Records go to the rings of a recording (recording.h).
  bool recording() const noexcept { return slots_ != nullptr; }

  // Returns a zeroed record whose `begin` ticket is drawn, or null when the record must be dropped. `passing`: as IsPassing says of it.
  Record* Begin(bool passing = false) noexcept;
  // The record says all that is known before its call returns. Without this a recording drops a record whose call did not return.
  void Entered(Record* record) noexcept {
    if (slots_ != nullptr) CheckBegun(record);
  }
  // Draws the `end` ticket, which completes the record.
  void Finish(Record* record) noexcept;

 private:
  void Reserve(std::uint64_t slot) noexcept;
  Record* BeginInRing(Ring* ring) noexcept;
  bool Supply(Ring* ring, std::uint64_t at) noexcept;
  static void CheckBegun(Record* record) noexcept;

  JournalHeader* header_ = nullptr;
  ModuleRow* modules_ = nullptr;
  StackRow* stacks_ = nullptr;
  PythonRow* python_ = nullptr;
  Record* records_ = nullptr;    // null for a recording
  RecordSlot* slots_ = nullptr;  // of a recording
};

// Makes sure that a page of the journal has storage before anyone touches it. Without storage, touching the page would
// raise SIGBUS in the audited program.
//
// Safe from all threads; a page may be asked for twice. Uses MADV_POPULATE_WRITE of Linux 5.14. Older kernels answer EINVAL: there pages
// get storage on first use, and the program does not survive a full disk.

// Allocates storage for [address, address + bytes), extended to whole pages. False when the file system cannot supply it.
[[nodiscard]] bool Populate(void* address, std::size_t bytes) noexcept;

// For tables whose rows are touched in no particular order. Keeps a bit per page.
template <std::size_t table_bytes>
class PageGuard {
 public:
  [[nodiscard]] bool Ensure(char* table, std::size_t offset, std::size_t bytes) noexcept {
    for (std::size_t page = offset / kPage; page <= (offset + bytes - 1) / kPage; ++page) {
      std::atomic<std::uint64_t>& word = done_[page / 64];
      const std::uint64_t bit = std::uint64_t{1} << page % 64;
      if ((word.load(std::memory_order_relaxed) & bit) != 0) continue;
      if (!Populate(table + page * kPage, kPage)) return false;
      word.fetch_or(bit, std::memory_order_relaxed);
    }
    return true;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  std::atomic<std::uint64_t> done_[(table_bytes + kPage - 1) / kPage / 64 + 1] = {};
};

}  // namespace cuaudit::faults
