// SPDX-License-Identifier: MIT
// Journals, read and folded. First byte odd: the bytes are a file. Even: the bytes change a good header, then become records with few
// handles, so that calls meet the objects of others, and the file is cut somewhere. A file that begins with 'R' is no file: its bytes
// become a recording (cuaudit record), which is packed, changed and cut.
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/effects.h"
#include "faults/journal/journal_file.h"
#include "faults/journal/journal_view.h"
#include "faults/journal/recording.h"
#include "faults/journal/stack_key.h"
#include "harness/ledger/ledger.h"
#include "harness/recording/recording.h"
#include "include/cuaudit/fuzz_input.h"
#include "suites/fuzz/require.h"

#if defined(__SANITIZE_ADDRESS__)
#define CUAUDIT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUAUDIT_ASAN 1
#endif
#endif
#ifdef CUAUDIT_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) static_cast<void>(address), static_cast<void>(bytes)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) static_cast<void>(address), static_cast<void>(bytes)
#endif

namespace cuaudit::fuzz {
namespace {

using namespace cuaudit::faults;

constexpr std::size_t kRecords = 64;

// Everything that a reader may ask of a view.
void ReadAll(const JournalView& view) {
  std::uint64_t sum = 0;
  const std::span<const std::byte> records = std::as_bytes(view.records());
  for (const std::byte byte : records) sum += static_cast<std::uint64_t>(byte);
  const std::uint64_t ids[] = {0, 1, 2, kMaxStacks - 1, kMaxStacks, kMaxStacks + 1, 0xffffffffU};
  for (const std::uint64_t id : ids) {
    for (const std::uint64_t frame : view.Stack(static_cast<std::uint32_t>(id))) sum += frame;
    for (const char c : view.ModulePath(id)) sum += static_cast<unsigned char>(c);
    for (const std::uint8_t byte : view.ModuleBuildId(id)) sum += byte;
  }
  [[maybe_unused]] static volatile std::uint64_t g_sum;
  g_sum = sum;
}

bool Same(const harness::Ledger& one, const harness::Ledger& other) {
  if (one.objects.size() != other.objects.size() || one.violations.size() != other.violations.size()) return false;
  for (std::size_t i = 0; i < one.objects.size(); ++i) {
    const harness::Object& a = one.objects[i];
    const harness::Object& b = other.objects[i];
    if (a.kind != b.kind || a.state != b.state || a.handle != b.handle || a.pid != b.pid || a.generation != b.generation) return false;
  }
  for (std::size_t i = 0; i < one.violations.size(); ++i) {
    if (one.violations[i].rule != other.violations[i].rule || one.violations[i].object != other.violations[i].object) return false;
  }
  return true;
}

void FoldAll(std::span<const Record> records) {
  const harness::Ledger ledger = harness::Fold(records);
  const auto count = static_cast<std::int64_t>(ledger.objects.size());
  for (const harness::Violation& violation : ledger.violations) {
    Require(violation.object >= -1 && violation.object < count, "a violation is about an object of the ledger, or about none");
  }
  for (const harness::Object& object : ledger.objects) {
    Require(static_cast<std::size_t>(object.kind) < driver::kKindCount, "an object has a kind");
    Require(object.state == harness::State::Live || object.released.begin != 0 || object.released.record_kind != RecordKind::Empty ||
                object.state == harness::State::Released,
            "what is no longer alive ended somewhere");
  }
  Require(Same(ledger, harness::Fold(records)), "the same records give the same ledger");
  std::vector<Record> turned(records.rbegin(), records.rend());
  bool distinct = true;  // equal tickets leave the order to the slots
  std::vector<bool> seen(kRecords * 4, false);
  for (const Record& record : records) {
    for (const std::uint64_t ticket : {record.begin, record.end}) {
      if (ticket == 0) continue;
      distinct = distinct && ticket < seen.size() && !seen[ticket];
      if (ticket < seen.size()) seen[ticket] = true;
    }
  }
  if (distinct) Require(Same(ledger, harness::Fold(turned)), "the order of the slots means nothing");
}

// Calls that make and release objects are most of the table's weight; any entry point may come.
std::uint16_t CallOf(FuzzInput* input) { return static_cast<std::uint16_t>(input->Short() % (driver::kCallCount + 1)); }

void MakeRecord(FuzzInput* input, std::uint64_t* clock, Record* record) {
  const std::uint32_t shape = input->Byte();
  record->kind = static_cast<RecordKind>(input->Below(8));
  record->call = CallOf(input);
  record->begin = ++*clock;
  record->end = (shape & 1U) != 0 ? 0 : ++*clock;
  record->pid = 1 + ((shape >> 1U) & 1U);
  record->tid = record->pid + ((shape >> 2U) & 1U);
  record->flags = (shape & 8U) != 0 ? input->Byte() : std::uint16_t{kForwarded};
  record->result = (shape & 16U) != 0 ? input->Byte() : 0;
  record->context = (shape & 32U) != 0 ? input->Below(16) : 0;
  record->cycle = (shape & 64U) != 0 ? input->Below(4) : 0;
  const std::uint32_t arguments = input->Below(kRecordArguments + 1);
  for (std::uint32_t i = 0; i < arguments; ++i) {
    const std::uint32_t value = input->Byte();
    record->argument[i] = value < 192 ? value : ~std::uint64_t{0} << (value - 192);
  }
}

class Template {
 public:
  Template() {
    JournalOptions options;
    options.record_capacity = kRecords;
    JournalHeader header{};
    Require(FormatHeader(options, &header) == nullptr, "a header can be made");
    bytes_ = std::make_unique<char[]>(header.file_bytes + alignof(JournalHeader));
    base_ = bytes_.get();
    size_ = header.file_bytes;
    first_record_ = header.records_offset;
  }

  void Try(FuzzInput input) {
    JournalOptions options;
    options.record_capacity = kRecords;
    auto* const header = ::new (base_) JournalHeader{};
    Require(FormatHeader(options, header) == nullptr, "a header can be made");
    char* const raw = base_;
    for (std::uint32_t patches = input.Below(4); patches != 0; --patches) {
      const std::uint32_t at = input.Byte();
      const std::uint64_t value = input.Byte();
      raw[at % 256] = static_cast<char>(value);
    }
    const std::uint32_t cut = input.Byte();
    const std::uint32_t extra = input.Byte();
    auto* const records = reinterpret_cast<Record*>(base_ + first_record_);
    std::uint64_t clock = 0;
    std::size_t made = 0;
    while (made < kRecords && !input.empty()) {
      records[made] = Record();
      MakeRecord(&input, &clock, &records[made]);
      ++made;
    }
    header->next_record.store(made + (extra < 16 ? extra : 0));
    const std::size_t whole = first_record_ + made * sizeof(Record);
    std::size_t size = cut < 128 ? size_ : whole - cut;
    if (cut >= 250) size = std::size_t{1} << (cut - 236);  // inside the tables
    ASAN_POISON_MEMORY_REGION(base_ + size, size_ - size);
    JournalView view;
    if (view.Open(base_, size) == nullptr) {
      ReadAll(view);
      FoldAll(view.records());
    }
    ASAN_UNPOISON_MEMORY_REGION(base_ + size, size_ - size);
    std::memset(base_ + first_record_, 0, made * sizeof(Record));
  }

 private:
  std::unique_ptr<char[]> bytes_;
  char* base_ = nullptr;
  std::size_t size_ = 0;
  std::size_t first_record_ = 0;
};

void TryFile(std::string_view text) {
  struct alignas(JournalHeader) Block {
    char bytes[alignof(JournalHeader)];
  };
  const auto copy = std::make_unique<Block[]>(text.size() / sizeof(Block) + 1);
  std::memcpy(copy.get(), text.data(), text.size());
  JournalView view;
  if (view.Open(copy.get(), text.size()) == nullptr) ReadAll(view);
}

// What a reader makes of these bytes; packing it anew must give what it says, whatever it is.
void ReadRecordingOf(const char* bytes, std::size_t size) {
  JournalView view;
  if (view.Open(bytes, size) != nullptr || !harness::IsRecording(view)) return;
  ReadAll(view);
  const harness::Recording seen = harness::ReadRecording(view);
  Require(seen.records.size() == seen.times.size() && seen.records.size() <= view.slots().size(), "a record has a slot and a time");
  for (std::size_t i = 1; i < seen.records.size(); ++i)
    Require(seen.records[i - 1].begin <= seen.records[i].begin, "records are in the order in which they were begun");
  const JournalView joined = JournalView::Join(&view.header(), seen.records, view);
  harness::Ledger ledger = harness::Fold(seen.records);
  (void)harness::HeldBefore(joined, ledger);
  harness::DropWhatNeedsTheBeginning(&ledger);
  const std::string packed = harness::PackRecording(view, seen);
  const auto words = std::make_unique<std::uint64_t[]>(packed.size() / sizeof(std::uint64_t));
  std::memcpy(words.get(), packed.data(), packed.size());
  JournalView again;
  Require(again.Open(words.get(), packed.size()) == nullptr, "what was packed can be read");
  const harness::Recording same = harness::ReadRecording(again);
  Require(same.records.size() == seen.records.size() && same.torn == seen.torn && same.damaged == seen.damaged,
          "packing keeps what a reader keeps");
  for (std::size_t i = 0; i < same.records.size(); ++i)
    Require(again.Stack(same.records[i].stack).size() == view.Stack(seen.records[i].stack).size(), "packing keeps call stacks");
}

void TryRecording(FuzzInput input) {
  constexpr std::size_t kSlots = 32;
  JournalOptions options;
  options.record_capacity = kSlots;
  options.recording = true;
  options.window = input.Byte();
  // A live file is mostly empty tables, so the program of bytes is laid out as a packed file is: few rows, no gaps.
  constexpr std::size_t kRows = 4;
  constexpr std::size_t kModulesAt = sizeof(JournalHeader);
  constexpr std::size_t kStacksAt = kModulesAt + kRows * sizeof(ModuleRow);
  constexpr std::size_t kPythonAt = kStacksAt + kRows * sizeof(StackRow);
  constexpr std::size_t kRecordsAt = kPythonAt + kRows * sizeof(PythonRow);
  constexpr std::size_t kSize = kRecordsAt + kSlots * sizeof(RecordSlot);
  const auto words = std::make_unique<std::uint64_t[]>(kSize / sizeof(std::uint64_t));
  char* const base = reinterpret_cast<char*>(words.get());
  auto* const header = ::new (base) JournalHeader{};
  Require(FormatHeader(options, header) == nullptr, "a header can be made");
  header->file_bytes = kSize;
  header->modules_offset = kModulesAt;
  header->stacks_offset = kStacksAt;
  header->python_offset = kPythonAt;
  header->records_offset = kRecordsAt;
  header->module_rows = header->stack_rows = header->python_rows = kRows;
  for (Ring& ring : header->ring) ring.lost_until.store(input.Byte() % 64);
  header->fixed_check = FixedDigestOf(*header);
  for (std::size_t row = 0; row < kRows; ++row) {
    auto* const module = ::new (base + kModulesAt + row * sizeof(ModuleRow)) ModuleRow{};
    module->state.store(input.Byte() % 3);
    module->path[0] = static_cast<char>(input.Byte());
    module->build_id_bytes = input.Byte();
    auto* const python = ::new (base + kPythonAt + row * sizeof(PythonRow)) PythonRow{};
    python->complete.store(input.Byte() % 2);
    auto* const stack = ::new (base + kStacksAt + row * sizeof(StackRow)) StackRow{};
    const std::size_t depth = input.Below(kMaxFrames + 1);
    for (std::size_t i = 0; i < depth; ++i) {
      const std::uint64_t module_of = input.Byte() % 8;
      stack->frame[i] = (module_of < 6 ? module_of : module_of == 6 ? kPython : kNoModule) << 48 | std::uint64_t{input.Byte()} << 20;
    }
    stack->depth.store(static_cast<std::uint32_t>(depth));
    stack->hash.store(HashOfFrames(stack->frame, depth) + (input.Byte() == 1 ? 1 : 0));
  }
  std::uint64_t clock = 0;
  for (std::size_t i = 0; i < kSlots && !input.empty(); ++i) {
    auto* const slot = ::new (base + kRecordsAt + i * sizeof(RecordSlot)) RecordSlot{};
    MakeRecord(&input, &clock, &slot->record);
    slot->record.stack = input.Byte() % 6;
    slot->time = input.Byte();
    const std::uint32_t shape = input.Byte();
    const bool returned = slot->record.end != 0;
    slot->state.store(returned ? kSlotDone : kSlotHeld);
    if (shape != 1) (returned ? slot->done : slot->begun).store(returned ? DoneCheckOf(*slot) : BegunCheckOf(*slot));
    if (shape == 2) slot->state.store(input.Byte() % 4);
  }
  ReadRecordingOf(base, kSize);
  // The same as a packed file, whose check is right, and then changed.
  header->flags.fetch_or(kPacked);
  header->fixed_check = FixedDigestOf(*header);
  header->tables_check = DigestOf(*header, base);
  for (std::uint32_t patches = input.Below(4); patches != 0; --patches) {
    const std::size_t at = input.Short() % kSize;
    base[at] = static_cast<char>(input.Byte());
  }
  const std::uint32_t cut = input.Short();
  const std::size_t size = cut == 0 ? kSize : cut % kSize;
  ASAN_POISON_MEMORY_REGION(base + size, kSize - size);
  ReadRecordingOf(base, size);
  ASAN_UNPOISON_MEMORY_REGION(base + size, kSize - size);
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::FuzzInput input(data, size);
  static auto* const kept = new cuaudit::fuzz::Template;
  if (input.Below(2) == 0) {
    kept->Try(input);
    return 0;
  }
  const std::string_view file = input.Rest();
  if (!file.starts_with('R')) cuaudit::fuzz::TryFile(file);
  else cuaudit::fuzz::TryRecording(cuaudit::FuzzInput(data + 2, size - 2));
  return 0;
}
