// SPDX-License-Identifier: MIT
#include "faults/journal/journal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/driver/call_id.h"
#include "faults/journal/page_guard.h"

namespace cuaudit::faults {
namespace {

// Memory is asked for one chunk ahead: a store to a page that the disk cannot hold would be SIGBUS in somebody else's program.
constexpr std::uint64_t kChunkRecords = 2048;

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
  char* base = static_cast<char*>(memory);
  modules_ = reinterpret_cast<ModuleRow*>(base + header_copy.modules_offset);
  stacks_ = reinterpret_cast<StackRow*>(base + header_copy.stacks_offset);
  records_ = reinterpret_cast<Record*>(base + header_copy.records_offset);
  header_ = static_cast<JournalHeader*>(memory);
  limit_.store(header_copy.record_capacity, std::memory_order_relaxed);
  const std::uint64_t now = header_->next_record.load(std::memory_order_relaxed) / kChunkRecords;
  Populate(now);
  Populate(now + 1);
  return nullptr;
}

void Journal::Populate(std::uint64_t chunk) noexcept {
  const std::uint64_t first = chunk * kChunkRecords;
  const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
  if (first >= limit) return;
  const std::uint64_t count = limit - first < kChunkRecords ? limit - first : kChunkRecords;
  if (!faults::Populate(records_ + first, count * sizeof(Record))) limit_.store(first, std::memory_order_relaxed);
}

Record* Journal::Begin() noexcept {
  const std::uint64_t slot = header_->next_record.fetch_add(1, std::memory_order_relaxed);
  if (slot % kChunkRecords == 0 && slot != 0) Populate(slot / kChunkRecords + 1);
  if (slot >= limit_.load(std::memory_order_relaxed)) {
    header_->dropped.fetch_add(1, std::memory_order_relaxed);
    header_->flags.fetch_or(kRecordsDropped, std::memory_order_relaxed);
    return nullptr;
  }
  Record* record = records_ + slot;
  record->begin = header_->clock.fetch_add(1, std::memory_order_acq_rel) + 1;
  return record;
}

void Journal::Finish(Record* record) noexcept { record->end = header_->clock.fetch_add(1, std::memory_order_acq_rel) + 1; }

}  // namespace cuaudit::faults
