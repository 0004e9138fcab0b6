// SPDX-License-Identifier: MIT
#include "faults/journal/journal_view.h"

#include <string.h>

#include "faults/driver/call_id.h"
#include "faults/journal/recording.h"

#define CUAUDIT_TEXT_OF(value) #value
#define CUAUDIT_TEXT(value) CUAUDIT_TEXT_OF(value)

namespace cuaudit::faults {

const char* JournalView::Open(const void* bytes, std::size_t size) noexcept {
  *this = JournalView();
  const char* base = static_cast<const char*>(bytes);
  if (size < sizeof(kJournalMagic) || memcmp(base, kJournalMagic, sizeof(kJournalMagic)) != 0) {
    return "expected a cuaudit journal (its first 8 bytes are 'cuauditJ')";
  }
  if (size < sizeof(JournalHeader)) return "the journal is cut inside its header";
  const JournalHeader* header = static_cast<const JournalHeader*>(bytes);
  if (header->version == __builtin_bswap32(kJournalVersion)) return "the journal was written on a machine with the other order of bytes";
  if (header->version != kJournalVersion || header->header_bytes != sizeof(JournalHeader)) {
    return "the journal was written by another version of cuaudit (expected version " CUAUDIT_TEXT(CUAUDIT_JOURNAL_VERSION) ")";
  }
  if (header->table_digest != driver::TableDigest()) {
    return "the journal was written by a cuaudit built from other CUDA headers";
  }
  if (header->byte_order != kByteOrder || header->pointer_bytes != sizeof(void*)) {
    return "the journal was written on a machine with other pointers or another order of bytes";
  }
  const std::uint64_t modules_end = header->modules_offset + header->module_rows * sizeof(ModuleRow);
  const std::uint64_t stacks_end = header->stacks_offset + header->stack_rows * sizeof(StackRow);
  const std::uint64_t python_end = header->python_offset + header->python_rows * sizeof(PythonRow);
  if (header->module_rows > kMaxModules || header->stack_rows > kMaxStacks || header->python_rows > kMaxPythonFunctions ||
      header->modules_offset < sizeof(JournalHeader) || modules_end > header->stacks_offset || stacks_end > header->python_offset ||
      python_end > header->records_offset || header->records_offset % alignof(Record) != 0 ||
      header->stacks_offset % alignof(StackRow) != 0 || header->modules_offset % alignof(ModuleRow) != 0 ||
      header->python_offset % alignof(PythonRow) != 0 || header->records_offset > (std::uint64_t{1} << 40)) {
    return "the journal's header is damaged (tables out of order)";
  }
  if (header->driver_path[sizeof(header->driver_path) - 1] != '\0') return "the journal's header is damaged (a text without an end)";
  const std::uint32_t flags = header->flags.load(std::memory_order_relaxed);
  const bool recording = (flags & kRecording) != 0;
  // Only a recording has a time and these checks, so a flag that was lost does not make it another journal.
  const bool of_recording = header->started != 0 || header->fixed_check != 0 || (flags & kPacked) != 0;
  const bool unlike_made = header->fixed_check != 0 && header->fixed_check != FixedDigestOf(*header);
  if (recording != of_recording || unlike_made || (header->tables_check != 0 && (flags & kPacked) == 0)) {
    return "the recording is damaged: its header is not the one that was made";
  }
  if ((flags & kPacked) != 0 && (!recording || size < header->records_offset || header->tables_check != DigestOf(*header, base))) {
    return "the recording is damaged: its tables do not have the check that its header says";
  }
  const std::uint64_t written = header->next_record.load(std::memory_order_acquire);
  std::uint64_t count = written < header->record_capacity ? written : header->record_capacity;
  const auto rows_before = [size](std::uint64_t offset, std::size_t row, std::uint64_t wanted) {
    const std::uint64_t room = size > offset ? (size - offset) / row : 0;
    return static_cast<std::size_t>(wanted < room ? wanted : room);
  };
  truncated_ = size < header->file_bytes;
  checked_ = recording;
  header_ = header;
  modules_ = reinterpret_cast<const ModuleRow*>(base + header->modules_offset);
  module_count_ = rows_before(header->modules_offset, sizeof(ModuleRow), header->module_rows);
  stacks_ = reinterpret_cast<const StackRow*>(base + header->stacks_offset);
  stack_count_ = rows_before(header->stacks_offset, sizeof(StackRow), header->stack_rows);
  python_ = reinterpret_cast<const PythonRow*>(base + header->python_offset);
  python_count_ = rows_before(header->python_offset, sizeof(PythonRow), header->python_rows);
  if (recording) {
    slots_ = {reinterpret_cast<const RecordSlot*>(base + header->records_offset),
              rows_before(header->records_offset, sizeof(RecordSlot), header->record_capacity)};
    return nullptr;
  }
  records_ = {reinterpret_cast<const Record*>(base + header->records_offset), rows_before(header->records_offset, sizeof(Record), count)};
  return nullptr;
}

JournalView JournalView::Join(const JournalHeader* header, std::span<const Record> records, const JournalView& tables,
                              std::size_t shared) noexcept {
  JournalView view = tables;
  view.header_ = header;
  view.records_ = records;
  view.shared_ = shared < records.size() ? shared : records.size();
  return view;
}

std::span<const std::uint64_t> JournalView::Stack(std::uint32_t id) const noexcept {
  if (id == 0 || id > stack_count_) return {};
  const StackRow& row = stacks_[id - 1];
  const std::uint32_t depth = row.depth.load(std::memory_order_acquire);
  const std::size_t kept = depth < kMaxFrames ? depth : kMaxFrames;
  // A recording comes from elsewhere, and a process may have been killed while it wrote the row.
  if (checked_ && row.hash.load(std::memory_order_acquire) != HashOfFrames(row.frame, kept)) return {};
  return {row.frame, kept};
}

std::string_view JournalView::ModulePath(std::uint64_t module) const noexcept {
  if (module >= module_count_ || modules_[module].state.load(std::memory_order_acquire) != 2) return {};
  const char* path = modules_[module].path;
  return {path, strnlen(path, sizeof(modules_[module].path))};
}

std::span<const std::uint8_t> JournalView::ModuleBuildId(std::uint64_t module) const noexcept {
  if (module >= module_count_ || modules_[module].state.load(std::memory_order_acquire) != 2) return {};
  const std::uint32_t bytes = modules_[module].build_id_bytes;
  return {modules_[module].build_id, bytes < sizeof(modules_[module].build_id) ? bytes : sizeof(modules_[module].build_id)};
}

const PythonRow* JournalView::PythonFunction(std::uint64_t frame) const noexcept { return FindPython(tables(), frame); }

}  // namespace cuaudit::faults
