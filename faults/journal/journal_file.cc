// SPDX-License-Identifier: MIT
#include "faults/journal/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "faults/driver/call_id.h"
#include "faults/journal/recording.h"

namespace cuaudit::faults {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t RoundUp(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

static_assert(driver::kBaseCount <= kHostThreadOccurrences);

constexpr std::size_t kModulesAt = RoundUp(sizeof(JournalHeader));
constexpr std::size_t kStacksAt = kModulesAt + RoundUp(kMaxModules * sizeof(ModuleRow));
constexpr std::size_t kPythonAt = kStacksAt + RoundUp(kMaxStacks * sizeof(StackRow));
constexpr std::size_t kRecordsAt = kPythonAt + RoundUp(kMaxPythonFunctions * sizeof(PythonRow));

}  // namespace

std::size_t SlotsWithin(std::uint64_t file_bytes) noexcept {
  return file_bytes / kPage * kPage < kRecordsAt ? 0
                                                 : static_cast<std::size_t>((file_bytes / kPage * kPage - kRecordsAt) / sizeof(RecordSlot));
}

const char* FormatHeader(const JournalOptions& options, JournalHeader* header) noexcept {
  if (options.record_capacity == 0 || options.record_capacity > (std::size_t{1} << 32) || options.stack_depth > kMaxFrames) {
    errno = EINVAL;
    return "journal options out of range";
  }
  memcpy(header->magic, kJournalMagic, sizeof(kJournalMagic));
  header->version = kJournalVersion;
  header->header_bytes = sizeof(JournalHeader);
  header->table_digest = driver::TableDigest();
  header->byte_order = kByteOrder;
  header->pointer_bytes = sizeof(void*);
  strncpy(header->tool_version, options.tool_version, sizeof(header->tool_version) - 1);
  header->file_bytes = kRecordsAt + RoundUp(options.record_capacity * (options.recording ? sizeof(RecordSlot) : sizeof(Record)));
  header->record_capacity = options.record_capacity;
  header->modules_offset = kModulesAt;
  header->stacks_offset = kStacksAt;
  header->python_offset = kPythonAt;
  header->records_offset = kRecordsAt;
  header->module_rows = kMaxModules;
  header->stack_rows = kMaxStacks;
  header->python_rows = kMaxPythonFunctions;
  header->stack_depth.store(options.stack_depth);
  header->flags.store((options.stacks_of_objects_only ? std::uint32_t{kStacksOfObjectsOnly} : 0U) |
                      (options.recording ? std::uint32_t{kRecording} : 0U));
  if (!options.recording) return nullptr;
  // Three quarters are for what lasts.
  header->window = options.window;
  header->started = HundredthsNow();
  header->ring[kPassing].slots = options.record_capacity / 4;
  header->ring[kLasting].slots = options.record_capacity - header->ring[kPassing].slots;
  header->ring[kPassing].first = header->ring[kLasting].slots;
  header->fixed_check = FixedDigestOf(*header);
  return nullptr;
}

const char* CreateJournal(const char* path, const JournalOptions& options, bool fresh) noexcept {
  alignas(JournalHeader) unsigned char bytes_of_header[sizeof(JournalHeader)] = {};
  JournalHeader* header = ::new (static_cast<void*>(bytes_of_header)) JournalHeader{};
  if (const char* wrong = FormatHeader(options, header)) return wrong;

  const int file = open(path, O_RDWR | O_CREAT | (fresh ? O_EXCL : O_TRUNC) | O_CLOEXEC, 0600);
  if (file < 0) return "cannot create the journal";
  // The header is written with a system call, so that a full disk is an error instead of a signal and the header's pages have storage.
  errno = 0;
  if (ftruncate(file, static_cast<off_t>(header->file_bytes)) != 0 ||
      pwrite(file, bytes_of_header, sizeof(bytes_of_header), 0) != sizeof(bytes_of_header)) {
    const int error = errno == 0 ? ENOSPC : errno;
    close(file);
    unlink(path);
    errno = error;
    return "cannot size the journal";
  }
  close(file);
  return nullptr;
}

const char* MemoryJournal::Open(const JournalOptions& options, bool shared) noexcept {
  JournalHeader wanted{};
  if (const char* wrong = FormatHeader(options, &wanted)) return wrong;
  bytes_ = wanted.file_bytes;
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return "no address space for the journal";
  memory_ = memory;
  if (const char* wrong = FormatHeader(options, ::new (memory) JournalHeader{})) return wrong;
  journal_.Adopt(memory);
  return nullptr;
}

MemoryJournal::~MemoryJournal() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

JournalView MemoryJournal::View() const noexcept {
  JournalView view;
  (void)view.Open(memory_, bytes_);
  return view;
}

void MemoryJournal::Clear() noexcept {
  JournalHeader& header = journal_.header();
  const std::uint64_t next = header.next_record.load(std::memory_order_relaxed);
  const std::uint64_t used = next < header.record_capacity ? next : header.record_capacity;
  memset(static_cast<char*>(memory_) + header.records_offset, 0, used * sizeof(Record));
  header.next_record.store(0, std::memory_order_relaxed);
  header.clock.store(0, std::memory_order_relaxed);
  header.dropped.store(0, std::memory_order_relaxed);
  header.flags.fetch_and(~std::uint32_t{kRecordsDropped}, std::memory_order_relaxed);
  header.cycle.store(0, std::memory_order_relaxed);
  header.phase.store(0, std::memory_order_relaxed);
  header.forced_progress.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kMaxFaults; ++i) {
    header.fired[i].store(0, std::memory_order_relaxed);
    header.matched[i].store(0, std::memory_order_relaxed);
  }
  memset(static_cast<void*>(header.occurrences), 0, sizeof(header.occurrences));  // nobody may append during Clear
  under_way_.clear();
  looked_at_ = 0;
}

bool MemoryJournal::TakeIfComplete(std::uint64_t slot, std::vector<Record>* records) {
  Record* const record = reinterpret_cast<Record*>(static_cast<char*>(memory_) + journal_.header().records_offset) + slot;
  if (__atomic_load_n(&record->end, __ATOMIC_ACQUIRE) == 0) return false;
  records->push_back(*record);
  *record = Record{};
  return true;
}

std::uint64_t MemoryJournal::Drain(std::vector<Record>* records) {
  JournalHeader& header = journal_.header();
  const std::uint64_t dropped = header.dropped.exchange(0, std::memory_order_relaxed);
  if (dropped != 0) header.flags.fetch_and(~std::uint32_t{kRecordsDropped}, std::memory_order_relaxed);
  std::uint64_t next = header.next_record.load(std::memory_order_acquire);
  const std::uint64_t reserved = header.reserved.load(std::memory_order_acquire);
  // Records without storage were dropped, or their thread is allocating storage now.
  const std::uint64_t end = std::min(next, reserved);
  std::erase_if(under_way_, [&](std::uint64_t slot) { return TakeIfComplete(slot, records); });
  for (; looked_at_ < end; ++looked_at_) {
    if (!TakeIfComplete(looked_at_, records)) under_way_.push_back(looked_at_);
  }
  const bool all = end == std::min(next, header.record_capacity) || (header.flags.load(std::memory_order_relaxed) & kNoSpace) != 0;
  // A record that begins before this exchange lies past these slots, one that begins after it takes the first slot. Both slots are
  // empty.
  if (all && under_way_.empty() && header.next_record.compare_exchange_strong(next, 0, std::memory_order_acq_rel)) looked_at_ = 0;
  return dropped;
}

}  // namespace cuaudit::faults
