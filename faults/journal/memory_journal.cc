// SPDX-License-Identifier: MIT
#include "faults/journal/memory_journal.h"

#include <string.h>
#include <sys/mman.h>

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
  memset(static_cast<void*>(header.occurrences), 0, sizeof(header.occurrences));  // nobody appends meanwhile, see above
}

}  // namespace cuaudit::faults
