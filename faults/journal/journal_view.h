// SPDX-License-Identifier: MIT
// journal_view.h: reads a journal, complete or cut off at any byte.
//
// The view borrows the bytes. Other processes may still append: the view then sees more records over time, but no half-written one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "faults/journal/stack_key.h"

namespace cuaudit::faults {

struct KeyMemo;

class JournalView {
 public:
  // Returns null when the bytes are a usable journal; otherwise leaves the view empty and returns a static phrase, such as "expected a
  // journal: bad magic". Never reads past `size`.
  [[nodiscard]] const char* Open(const void* bytes, std::size_t size) noexcept;

  // A journal in parts: header and records in memory, modules, call stacks and Python functions in `tables`. All must outlive the view. The
  // first `shared` records were written before the process was forked for a trial, when no fault had fired.
  [[nodiscard]] static JournalView Join(const JournalHeader* header, std::span<const Record> records, const JournalView& tables,
                                        std::size_t shared = 0) noexcept;

  const JournalHeader& header() const noexcept { return *header_; }
  // All slots that were handed out, in slot order. A slot may be Empty: a SIGKILL came before the record was written.
  std::span<const Record> records() const noexcept { return records_; }
  // Records of this run alone: all records, or those that a forked process wrote itself. Every fault of the plan fired in one of these.
  std::span<const Record> own_records() const noexcept { return records_.subspan(shared_); }
  // The same journal with only `count` records, from `first` on.
  JournalView Part(std::size_t first, std::size_t count) const noexcept {
    JournalView part = *this;
    part.records_ = records_.subspan(first, count);
    part.shared_ = 0;
    return part;
  }
  // True when there are fewer bytes than the header says: records past the cut are missing.
  bool truncated() const noexcept { return truncated_; }
  // Of a recording: all slots that lie in the file. records() is empty then; harness/recording reads the slots.
  std::span<const RecordSlot> slots() const noexcept { return slots_; }

  // Cache of keys computed from the call stacks; null: none. It belongs to the same tables as the stacks.
  KeyMemo* memo() const noexcept { return memo_; }
  void Remember(KeyMemo* memo) noexcept { memo_ = memo; }

  // Frames of a stack, innermost first; empty for id 0 and for a stack that was not completely written.
  std::span<const std::uint64_t> Stack(std::uint32_t id) const noexcept;
  std::span<const ModuleRow> modules() const noexcept { return {modules_, module_count_}; }
  std::string_view ModulePath(std::uint64_t module) const noexcept;
  std::span<const std::uint8_t> ModuleBuildId(std::uint64_t module) const noexcept;
  // Function of a frame whose module is kPython; null: it was not completely written.
  const PythonRow* PythonFunction(std::uint64_t frame) const noexcept;
  FrameTables tables() const noexcept { return {modules(), {python_, python_count_}}; }

 private:
  const JournalHeader* header_ = nullptr;
  const ModuleRow* modules_ = nullptr;
  std::size_t module_count_ = 0;
  const StackRow* stacks_ = nullptr;
  std::size_t stack_count_ = 0;
  const PythonRow* python_ = nullptr;
  std::size_t python_count_ = 0;
  std::span<const Record> records_;
  std::span<const RecordSlot> slots_;
  std::size_t shared_ = 0;
  KeyMemo* memo_ = nullptr;
  bool truncated_ = false;
  bool checked_ = false;  // of a recording: call stacks are compared with their hash
};

}  // namespace cuaudit::faults
