// SPDX-License-Identifier: MIT
#include "faults/journal/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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

}  // namespace cuaudit::faults
