// SPDX-License-Identifier: MIT
// journal_file.h: makes an empty journal: a file for the programs that will append to it, or only the header for a journal in memory.
//
// The file belongs to the caller. It is sparse: 4 Mi records of capacity take no disk space until they are written.
// Functions return null on success, otherwise a static phrase, with errno set by the failing system call. A failure leaves no partial
// file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/journal/layout.h"

namespace cuaudit::faults {

struct JournalOptions {
  std::size_t record_capacity = kDefaultRecordCapacity;
  std::uint32_t stack_depth = 16;       // frames kept per call, at most kMaxFrames; 0: no stacks
  bool stacks_of_objects_only = false;  // take stacks only for injected calls and for calls that acquire or release
  bool recording = false;               // `record_capacity` slots in rings (recording.h)
  std::uint32_t window = 0;             // JournalHeader::window
  const char* tool_version = "";
};

// The number of slots of a recording whose file is at most so long; 0: too short for any.
[[nodiscard]] std::size_t SlotsWithin(std::uint64_t file_bytes) noexcept;

// Makes the header of an empty journal. Its file_bytes is the size of header, tables and records together. Returns null, or what is
// wrong with the options.
[[nodiscard]] const char* FormatHeader(const JournalOptions& options, JournalHeader* header) noexcept;

// An existing file is emptied, but not by `fresh`: then it is an error (EEXIST).
[[nodiscard]] const char* CreateJournal(const char* path, const JournalOptions& options, bool fresh = false) noexcept;

}  // namespace cuaudit::faults
