// SPDX-License-Identifier: MIT
// Journals, read and folded. First byte odd: the bytes are a file. Even: the bytes change a good header, then become records with few
// handles, so that calls meet the objects of others, and the file is cut somewhere.
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/effects.h"
#include "faults/journal/journal_file.h"
#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"
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

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::FuzzInput input(data, size);
  static auto* const kept = new cuaudit::fuzz::Template;
  if (input.Below(2) == 1) cuaudit::fuzz::TryFile(input.Rest());
  else kept->Try(input);
  return 0;
}
