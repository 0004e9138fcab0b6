// SPDX-License-Identifier: MIT
// journal.h: appends records to a journal file that the tool made; readable at any moment, after SIGKILL too.
//
//   Owns      the mapping of a file, for the rest of the process (records may be written from exit handlers). Keeps no file descriptor, so
//   a
//             program that closes all of its own loses nothing.
//   Threads   Begin, Finish and the tables may be used by all threads of all processes that opened the same file.
//   Units     records.
//   Errors    Open answers a static phrase. A full journal or disk drops records, counts them and raises kRecordsDropped; it never
//             stops or kills the program.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/journal/layout.h"

namespace cuaudit::faults {

class Journal {
 public:
  [[nodiscard]] const char* Open(const char* path) noexcept;
  // A journal in memory, `memory` being formatted (journal_file.h) and as large as its header says; borrowed.
  void Adopt(void* memory) noexcept;
  bool is_open() const noexcept { return header_ != nullptr; }
  JournalHeader& header() noexcept { return *header_; }
  ModuleRow* modules() noexcept { return modules_; }
  StackRow* stacks() noexcept { return stacks_; }

  // A zeroed record with its `begin` drawn, or null when it must be dropped.
  Record* Begin() noexcept;
  // Draws `end`: from here on the record is complete.
  void Finish(Record* record) noexcept;

 private:
  void Reserve(std::uint64_t slot) noexcept;

  JournalHeader* header_ = nullptr;
  ModuleRow* modules_ = nullptr;
  StackRow* stacks_ = nullptr;
  Record* records_ = nullptr;
};

}  // namespace cuaudit::faults
