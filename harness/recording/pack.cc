// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/journal/recording.h"
#include "faults/journal/stack_key.h"
#include "harness/recording/recording.h"

namespace cuaudit::harness {
namespace {

// Old numbers of rows and their new ones, in the order in which they were first met.
class Rows {
 public:
  std::uint64_t NumberOf(std::uint64_t old) {
    const auto [at, fresh] = number_.emplace(old, old_.size());
    if (fresh) old_.push_back(old);
    return at->second;
  }
  const std::vector<std::uint64_t>& old() const { return old_; }

 private:
  std::map<std::uint64_t, std::uint64_t> number_;
  std::vector<std::uint64_t> old_;
};

class Tables {
 public:
  explicit Tables(const faults::JournalView& journal) : journal_(journal) {}

  // Keeps all modules, in their order, whether a call stack names them or not.
  void KeepModules() {
    for (std::uint64_t module = 0; module < journal_.modules().size(); ++module) {
      if (!journal_.ModulePath(module).empty()) (void)modules_.NumberOf(module);
    }
  }

  // 0 for a stack that is not there, or not whole.
  std::uint32_t StackOf(std::uint32_t old) {
    if (journal_.Stack(old).empty()) return 0;
    return static_cast<std::uint32_t>(stacks_.NumberOf(old)) + 1;
  }

  // All stacks first, because they say which other rows there are.
  void Collect() {
    for (const std::uint64_t old : stacks_.old()) {
      std::vector<std::uint64_t> frames;
      for (const std::uint64_t frame : journal_.Stack(static_cast<std::uint32_t>(old))) frames.push_back(Renumbered(frame));
      frames_.push_back(std::move(frames));
    }
  }

  std::size_t modules() const { return modules_.old().size(); }
  std::size_t stacks() const { return frames_.size(); }
  std::size_t python() const { return python_.old().size(); }

  void WriteModules(char* at) const {
    auto* row = reinterpret_cast<faults::ModuleRow*>(at);
    for (const std::uint64_t old : modules_.old()) {
      faults::ModuleRow* const made = ::new (static_cast<void*>(row++)) faults::ModuleRow{};
      made->base.store(journal_.modules()[old].base.load());
      made->state.store(2);
      const std::span<const std::uint8_t> id = journal_.ModuleBuildId(old);
      made->build_id_bytes = static_cast<std::uint32_t>(id.size());
      if (!id.empty()) std::memcpy(made->build_id, id.data(), id.size());
      const std::string_view path = journal_.ModulePath(old);
      path.copy(made->path, sizeof(made->path) - 1);
    }
  }

  void WriteStacks(char* at) const {
    auto* row = reinterpret_cast<faults::StackRow*>(at);
    for (const std::vector<std::uint64_t>& frames : frames_) {
      faults::StackRow* const made = ::new (static_cast<void*>(row++)) faults::StackRow{};
      std::memcpy(made->frame, frames.data(), frames.size() * sizeof(frames.front()));
      made->hash.store(faults::HashOfFrames(made->frame, frames.size()));
      made->depth.store(static_cast<std::uint32_t>(frames.size()));
    }
  }

  void WritePython(char* at) const {
    auto* row = reinterpret_cast<faults::PythonRow*>(at);
    for (const std::uint64_t old : python_.old()) {
      faults::PythonRow* const made = ::new (static_cast<void*>(row++)) faults::PythonRow{};
      const faults::PythonRow& from = *journal_.PythonFunction(faults::PythonFrame(old, 0));
      made->hash.store(from.hash.load());
      made->complete.store(1);
      made->first_line = from.first_line;
      std::memcpy(made->name, from.name, sizeof(made->name));
      std::memcpy(made->file, from.file, sizeof(made->file));
    }
  }

 private:
  std::uint64_t Renumbered(std::uint64_t frame) {
    const std::uint64_t module = faults::FrameModule(frame);
    if (module == faults::kPython) {
      if (journal_.PythonFunction(frame) == nullptr)
        return faults::PythonFrame(faults::kMaxPythonFunctions, faults::FramePythonLine(frame));
      return faults::PythonFrame(python_.NumberOf(faults::FramePythonRow(frame)), faults::FramePythonLine(frame));
    }
    if (journal_.ModulePath(module).empty()) return faults::kNoModule << 48 | faults::FrameOffset(frame);
    return modules_.NumberOf(module) << 48 | faults::FrameOffset(frame);
  }

  const faults::JournalView& journal_;
  Rows stacks_;
  Rows modules_;
  Rows python_;
  std::vector<std::vector<std::uint64_t>> frames_;
};

// The bytes of a journal with these tables and room for `count` rows behind them.
class Packed {
 public:
  Packed(const faults::JournalView& journal, const Tables& tables, std::size_t count, std::size_t row_bytes) {
    static_assert(sizeof(faults::JournalHeader) % alignof(faults::RecordSlot) == 0 && alignof(faults::Record) <= alignof(std::uint64_t));
    const std::size_t modules_at = sizeof(faults::JournalHeader);
    const std::size_t stacks_at = modules_at + tables.modules() * sizeof(faults::ModuleRow);
    const std::size_t python_at = stacks_at + tables.stacks() * sizeof(faults::StackRow);
    const std::size_t records_at = python_at + tables.python() * sizeof(faults::PythonRow);
    size_ = records_at + count * row_bytes;
    words_ = std::make_unique<std::uint64_t[]>(size_ / sizeof(std::uint64_t));  // zeroed, and aligned for every row
    std::memcpy(bytes(), static_cast<const void*>(&journal.header()), sizeof(faults::JournalHeader));
    header()->file_bytes = size_;
    header()->record_capacity = count;
    header()->modules_offset = modules_at;
    header()->stacks_offset = stacks_at;
    header()->python_offset = python_at;
    header()->records_offset = records_at;
    header()->module_rows = static_cast<std::uint32_t>(tables.modules());
    header()->stack_rows = static_cast<std::uint32_t>(tables.stacks());
    header()->python_rows = static_cast<std::uint32_t>(tables.python());
    header()->next_module.store(header()->module_rows);
    header()->next_stack.store(header()->stack_rows);
    tables.WriteModules(bytes() + modules_at);
    tables.WriteStacks(bytes() + stacks_at);
    tables.WritePython(bytes() + python_at);
  }

  faults::JournalHeader* header() { return reinterpret_cast<faults::JournalHeader*>(bytes()); }
  char* bytes() { return reinterpret_cast<char*>(words_.get()); }
  char* rows() { return bytes() + header()->records_offset; }
  std::string Text() { return {bytes(), size_}; }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<std::uint64_t[]> words_;
};

std::vector<std::uint32_t> StacksOf(std::span<const faults::Record> records, Tables* tables) {
  std::vector<std::uint32_t> stacks;
  stacks.reserve(records.size());
  for (const faults::Record& record : records) stacks.push_back(tables->StackOf(record.stack));
  tables->Collect();
  return stacks;
}

void DropData(faults::Record* record) {
  if (record->kind != faults::RecordKind::Call || record->call >= driver::kCallCount) return;
  const driver::BaseId base = BaseOf(*record);
  for (std::size_t i = 0; i < faults::kRecordArguments; ++i) {
    if (faults::IsData(base, i)) record->argument[i] = 0;
  }
}

std::string PackRun(const faults::JournalView& journal, bool with_data) {
  const std::span<const faults::Record> records = journal.records();
  Tables tables(journal);
  tables.KeepModules();
  const std::vector<std::uint32_t> stacks = StacksOf(records, &tables);
  Packed packed(journal, tables, records.size(), sizeof(faults::Record));
  packed.header()->next_record.store(records.size());
  packed.header()->reserved.store(records.size());
  auto* row = reinterpret_cast<faults::Record*>(packed.rows());
  for (std::size_t i = 0; i < records.size(); ++i) {
    faults::Record* const made = ::new (static_cast<void*>(row++)) faults::Record(records[i]);
    made->stack = stacks[i];
    if (!with_data) DropData(made);
  }
  return packed.Text();
}

}  // namespace

std::string PackJournal(const faults::JournalView& journal) { return PackRun(journal, true); }
std::string PackWithoutData(const faults::JournalView& journal) { return PackRun(journal, false); }

std::string PackRecording(const faults::JournalView& journal, const Recording& recording) {
  Tables tables(journal);
  const std::vector<std::uint32_t> stacks = StacksOf(recording.records, &tables);
  const std::size_t count = recording.records.size();
  Packed packed(journal, tables, count, sizeof(faults::RecordSlot));
  faults::JournalHeader* const header = packed.header();
  header->flags.fetch_or(faults::kPacked | (recording.counts_unknown ? faults::kCountsUnknown : 0U));
  header->packed_torn = static_cast<std::uint32_t>(std::min(recording.torn, faults::kMostCounted));
  header->packed_damaged = static_cast<std::uint32_t>(std::min(recording.damaged, faults::kMostCounted));
  for (std::size_t i = 0; i < faults::kRings; ++i) {
    faults::Ring& ring = header->ring[i];
    ring.overwritten.store(recording.gone[i]);
    ring.lost_until.store(recording.gone_until[i]);
    ring.first = i == 0 ? 0 : count;
    ring.slots = i == 0 ? count : 0;
    ring.next.store(ring.slots);
    ring.reserved.store(ring.slots);
  }
  auto* slot = reinterpret_cast<faults::RecordSlot*>(packed.rows());
  for (std::size_t i = 0; i < count; ++i) {
    faults::RecordSlot* const made = ::new (static_cast<void*>(slot++)) faults::RecordSlot{};
    made->record = recording.records[i];
    made->record.stack = stacks[i];
    made->time = recording.times[i];
    const bool returned = made->record.end != 0;
    made->state.store(returned ? faults::kSlotDone : faults::kSlotHeld);
    (returned ? made->done : made->begun).store(returned ? faults::DoneCheckOf(*made) : faults::BegunCheckOf(*made));
  }
  header->fixed_check = faults::FixedDigestOf(*header);
  header->tables_check = faults::DigestOf(*header, packed.bytes());
  return packed.Text();
}

}  // namespace cuaudit::harness
