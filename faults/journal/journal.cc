// SPDX-License-Identifier: MIT
#include "faults/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "faults/driver/call_id.h"
#include "faults/journal/recording.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace cuaudit::faults {
namespace {

// Storage is allocated ahead of use, because a store to a page that the disk cannot hold would raise SIGBUS in the audited program. Not far
// ahead: every trial has a journal of its own, and most need a few pages.
constexpr std::uint64_t kChunkRecords = 256;
constexpr std::uint64_t kAhead = kChunkRecords;

// Most slots of a ring that are passed over because a call is still under way there.
constexpr int kMostHeld = 1024;

}  // namespace

const char* Journal::Open(const char* path) noexcept {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return "cannot open the journal";
  struct stat info;
  JournalHeader header_copy;
  if (fstat(file, &info) != 0 || pread(file, static_cast<void*>(&header_copy), sizeof(header_copy), 0) != sizeof(header_copy) ||
      memcmp(header_copy.magic, kJournalMagic, sizeof(kJournalMagic)) != 0 || header_copy.version != kJournalVersion ||
      header_copy.table_digest != driver::TableDigest() || static_cast<std::uint64_t>(info.st_size) != header_copy.file_bytes ||
      (header_copy.flags.load() & kPacked) != 0) {
    close(file);
    return "the journal is not one made by this cuaudit";
  }
  void* memory = mmap(nullptr, header_copy.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return "cannot map the journal";
  // Most of the file is a hole of which single pages are used, and on a disk each page would bring 32 others of zeros.
  madvise(memory, header_copy.file_bytes, MADV_RANDOM);
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
  if ((header_->flags.load(std::memory_order_relaxed) & kRecording) != 0) {
    slots_ = reinterpret_cast<RecordSlot*>(base + header_->records_offset);
    return;
  }
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

Record* Journal::Begin(bool passing) noexcept {
  if (slots_ != nullptr) return BeginInRing(&header_->ring[passing ? kPassing : kLasting]);
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
  if (slots_ == nullptr) return;
  RecordSlot* const slot = reinterpret_cast<RecordSlot*>(record);  // its first member
  slot->done.store(DoneCheckOf(*slot), std::memory_order_relaxed);
  slot->state.store(kSlotDone, std::memory_order_release);
}

void Journal::CheckBegun(Record* record) noexcept {
  RecordSlot* const slot = reinterpret_cast<RecordSlot*>(record);
  slot->begun.store(BegunCheckOf(*slot), std::memory_order_release);
}

// Storage comes in chunks, as for other journals. Once the file system has no more, the ring has the length that it has by then.
bool Journal::Supply(Ring* ring, std::uint64_t at) noexcept {
  std::uint64_t reserved = ring->reserved.load(std::memory_order_acquire);
  while (reserved <= at) {
    if ((header_->flags.load(std::memory_order_relaxed) & kNoSpace) != 0) return false;
    const std::uint64_t left = ring->slots - reserved;
    const std::uint64_t count = left < kChunkRecords ? left : kChunkRecords;
    if (!Populate(slots_ + ring->first + reserved, count * sizeof(RecordSlot))) {
      header_->flags.fetch_or(kNoSpace, std::memory_order_relaxed);
      return false;
    }
    if (ring->reserved.compare_exchange_strong(reserved, reserved + count, std::memory_order_acq_rel)) reserved += count;
  }
  return true;
}

// A slot whose call is still under way is never taken: the ring goes on behind it.
Record* Journal::BeginInRing(Ring* ring) noexcept {
  for (int tries = 0; tries < kMostHeld; ++tries) {
    const bool full = (header_->flags.load(std::memory_order_relaxed) & kNoSpace) != 0;
    const std::uint64_t length = full ? ring->reserved.load(std::memory_order_acquire) : ring->slots;
    if (length == 0) break;
    const std::uint64_t at = ring->next.fetch_add(1, std::memory_order_acq_rel) % length;
    if (!Supply(ring, at)) continue;
    RecordSlot& slot = slots_[ring->first + at];
    std::uint32_t state = slot.state.load(std::memory_order_acquire);
    if (state == kSlotHeld || !slot.state.compare_exchange_strong(state, kSlotHeld, std::memory_order_acq_rel)) continue;
    if (state == kSlotDone) {  // noted before anything of the old record goes, so that no kill hides the gap
      ring->overwritten.fetch_add(1, std::memory_order_relaxed);
      std::uint64_t lost = ring->lost_until.load(std::memory_order_relaxed);
      while (lost < slot.record.end && !ring->lost_until.compare_exchange_weak(lost, slot.record.end, std::memory_order_acq_rel)) {
      }
    }
    slot.begun.store(0, std::memory_order_relaxed);
    slot.done.store(0, std::memory_order_relaxed);
    slot.record = Record();
    const std::uint64_t now = HundredthsNow();
    slot.time = now < header_->started ? 0 : static_cast<std::uint32_t>(now - header_->started);  // a clock may be set back
    slot.record.begin = header_->clock.fetch_add(1, std::memory_order_acq_rel) + 1;
    return &slot.record;
  }
  header_->dropped.fetch_add(1, std::memory_order_relaxed);
  header_->flags.fetch_or(kRecordsDropped, std::memory_order_relaxed);
  return nullptr;
}

bool Populate(void* address, std::size_t bytes) noexcept {
  constexpr std::uintptr_t kPage = 4096;
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(address) / kPage * kPage;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(address) + bytes + kPage - 1) / kPage * kPage;
  const int saved = errno;
  const bool done = madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE) == 0 || errno == EINVAL || errno == ENOSYS;
  errno = saved;
  return done;
}

}  // namespace cuaudit::faults
