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

struct KeyMemo;

class JournalView {
 public:
  // Null when the bytes are a usable journal, otherwise what was expected: "expected a journal: bad magic".
  [[nodiscard]] const char* Open(const void* bytes, std::size_t size) noexcept;

  // A journal in parts: header and records in memory, modules and call stacks in `tables`. All must outlive the view. The first `shared`
  // records were written before the process was forked for a trial: no fault had hit.
  [[nodiscard]] static JournalView Join(const JournalHeader* header, std::span<const Record> records, const JournalView& tables,
                                        std::size_t shared = 0) noexcept;

  const JournalHeader& header() const noexcept { return *header_; }
  // Every slot that was handed out, in slot order; some may be Empty (a call that did not reach its record before SIGKILL).
  std::span<const Record> records() const noexcept { return records_; }
  // Those that belong to this run alone: all of them, or what a forked process wrote itself. Every fault of the plan hit one of these.
  std::span<const Record> own_records() const noexcept { return records_.subspan(shared_); }
  // The same journal with `count` of its records from `first` on.
  JournalView Part(std::size_t first, std::size_t count) const noexcept {
    JournalView part = *this;
    part.records_ = records_.subspan(first, count);
    part.shared_ = 0;
    return part;
  }
  // Fewer bytes than the header promises: records past the cut are missing.
  bool truncated() const noexcept { return truncated_; }

  // Where readers keep what they have worked out of the call stacks; null: nowhere. Goes with the tables.
  KeyMemo* memo() const noexcept { return memo_; }
  void Remember(KeyMemo* memo) noexcept { memo_ = memo; }

  // Innermost frame first; empty for id 0 and for a stack that was not finished.
  std::span<const std::uint64_t> Stack(std::uint32_t id) const noexcept;
  std::span<const ModuleRow> modules() const noexcept { return {modules_, module_count_}; }
  std::string_view ModulePath(std::uint64_t module) const noexcept;
  std::span<const std::uint8_t> ModuleBuildId(std::uint64_t module) const noexcept;

 private:
  const JournalHeader* header_ = nullptr;
  const ModuleRow* modules_ = nullptr;
  std::size_t module_count_ = 0;
  const StackRow* stacks_ = nullptr;
  std::size_t stack_count_ = 0;
  std::span<const Record> records_;
  std::size_t shared_ = 0;
  KeyMemo* memo_ = nullptr;
  bool truncated_ = false;
};

}  // namespace cuaudit::faults
