// SPDX-License-Identifier: MIT
#include "faults/journal/memory_journal.h"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <new>

namespace cuaudit::faults {

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
