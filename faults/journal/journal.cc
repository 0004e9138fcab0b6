// SPDX-License-Identifier: MIT
#include "faults/journal/journal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "faults/driver/call_id.h"
#include "faults/journal/page_guard.h"

namespace cuaudit::faults {
namespace {

// Storage is allocated ahead of use, because a store to a page that the disk cannot hold would raise SIGBUS in the audited program.
constexpr std::uint64_t kChunkRecords = 2048;
constexpr std::uint64_t kAhead = kChunkRecords;

}  // namespace

const char* Journal::Open(const char* path) noexcept {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return "cannot open the journal";
  struct stat info;
  JournalHeader header_copy;
  if (fstat(file, &info) != 0 || pread(file, static_cast<void*>(&header_copy), sizeof(header_copy), 0) != sizeof(header_copy) ||
      memcmp(header_copy.magic, kJournalMagic, sizeof(kJournalMagic)) != 0 || header_copy.version != kJournalVersion ||
      header_copy.table_digest != driver::TableDigest() || static_cast<std::uint64_t>(info.st_size) != header_copy.file_bytes) {
    close(file);
    return "the journal is not one made by this cuaudit";
  }
  void* memory = mmap(nullptr, header_copy.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return "cannot map the journal";
  Adopt(memory);
  return nullptr;
}

void Journal::Continue(JournalHeader* header, Record* records) noexcept {
  // A system call instead of munmap, for which the host drop-in would write a record into the mapping that goes away.
  syscall(SYS_munmap, records_, (header_->record_capacity * sizeof(Record) + 4095) / 4096 * 4096);
  header_ = header;
  records_ = records;
}

void Journal::Adopt(void* memory) noexcept {
  header_ = static_cast<JournalHeader*>(memory);
  char* base = static_cast<char*>(memory);
  modules_ = reinterpret_cast<ModuleRow*>(base + header_->modules_offset);
  stacks_ = reinterpret_cast<StackRow*>(base + header_->stacks_offset);
  python_ = reinterpret_cast<PythonRow*>(base + header_->python_offset);
  records_ = reinterpret_cast<Record*>(base + header_->records_offset);
  Reserve(header_->next_record.load(std::memory_order_relaxed));
}

// All processes share `reserved`. Two processes that reserve at the same time do the same work twice, which is harmless. Neither waits
// for the other, because the other may have been killed.
void Journal::Reserve(std::uint64_t slot) noexcept {
  if ((header_->flags.load(std::memory_order_relaxed) & kNoSpace) != 0) return;
  std::uint64_t reserved = header_->reserved.load(std::memory_order_acquire);
  while (reserved <= slot + kAhead && reserved < header_->record_capacity) {
    const std::uint64_t left = header_->record_capacity - reserved;
    const std::uint64_t count = left < kChunkRecords ? left : kChunkRecords;
    if (!Populate(records_ + reserved, count * sizeof(Record))) {
      header_->flags.fetch_or(kNoSpace, std::memory_order_relaxed);
      return;
    }
    if (header_->reserved.compare_exchange_strong(reserved, reserved + count, std::memory_order_acq_rel)) reserved += count;
  }
}

Record* Journal::Begin() noexcept {
  const std::uint64_t slot = header_->next_record.fetch_add(1, std::memory_order_acquire);  // after MemoryJournal::Drain
  if (header_->reserved.load(std::memory_order_acquire) <= slot + kAhead) Reserve(slot);
  if (slot >= header_->reserved.load(std::memory_order_acquire)) {
    header_->dropped.fetch_add(1, std::memory_order_relaxed);
    header_->flags.fetch_or(kRecordsDropped, std::memory_order_relaxed);
    return nullptr;
  }
  Record* record = records_ + slot;
  record->begin = header_->clock.fetch_add(1, std::memory_order_acq_rel) + 1;
  return record;
}

void Journal::Finish(Record* record) noexcept {
  const std::uint64_t ticket = header_->clock.fetch_add(1, std::memory_order_acq_rel) + 1;
  __atomic_store_n(&record->end, ticket, __ATOMIC_RELEASE);
}

}  // namespace cuaudit::faults
