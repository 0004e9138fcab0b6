// SPDX-License-Identifier: MIT
// journal_view.h: reads a journal, finished or cut short at any byte.
//
//   Owns      nothing; borrows the bytes (a mapped file or a test's array).
//   Threads   read-only; safe while other processes still append, which see-through but never torn records.
//   Errors    Open answers what is wrong in one static phrase and leaves the view empty; it never reads past `size`.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "faults/journal/layout.h"

namespace cuaudit::faults {

class JournalView {
 public:
  // Null when the bytes are a usable journal, otherwise what was expected: "expected a journal: bad magic".
  [[nodiscard]] const char* Open(const void* bytes, std::size_t size) noexcept;

  const JournalHeader& header() const noexcept { return *header_; }
  // Every slot that was handed out, in slot order; some may be Empty (a call that did not reach its record before SIGKILL).
  std::span<const Record> records() const noexcept { return records_; }
  // The same journal with `count` of its records from `first` on.
  JournalView Part(std::size_t first, std::size_t count) const noexcept {
    JournalView part = *this;
    part.records_ = records_.subspan(first, count);
    return part;
  }
  // Fewer bytes than the header promises: records past the cut are missing.
  bool truncated() const noexcept { return truncated_; }

  // Innermost frame first; empty for id 0 and for a stack that was not finished.
  std::span<const std::uint64_t> Stack(std::uint32_t id) const noexcept;
  std::string_view ModulePath(std::uint64_t module) const noexcept;
  std::span<const std::uint8_t> ModuleBuildId(std::uint64_t module) const noexcept;

 private:
  const JournalHeader* header_ = nullptr;
  const ModuleRow* modules_ = nullptr;
  std::size_t module_count_ = 0;
  const StackRow* stacks_ = nullptr;
  std::size_t stack_count_ = 0;
  std::span<const Record> records_;
  bool truncated_ = false;
};

}  // namespace cuaudit::faults
