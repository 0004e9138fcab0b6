// SPDX-License-Identifier: MIT
// journal_file.h: makes an empty journal: a file for the programs that will append to it, or its header alone for one in memory.
//
//   Owns      nothing; the file belongs to the caller.
//   Threads   safe.
//   Units     records; frames per stack.
//   Errors    null on success, otherwise a static phrase with errno set by the failing system call. No half-written file is left.
//   Faults    makes no driver calls.
//   Source    ours. The file is sparse: 4 Mi records of capacity cost no disk until written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/journal/layout.h"

namespace cuaudit::faults {

struct JournalOptions {
  std::size_t record_capacity = kDefaultRecordCapacity;
  std::uint32_t stack_depth = 16;       // frames kept per call, 0: no stacks, at most kMaxFrames
  bool stacks_of_objects_only = false;  // stacks for calls that acquire or release, and for injected ones, not for the rest
};

// The header of an empty journal; file_bytes is what header, tables and records need together. Null, or what is wrong with the options.
[[nodiscard]] const char* FormatHeader(const JournalOptions& options, JournalHeader* header) noexcept;

[[nodiscard]] const char* CreateJournal(const char* path, const JournalOptions& options) noexcept;

}  // namespace cuaudit::faults
