// SPDX-License-Identifier: MIT
#include "faults/journal/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "faults/driver/call_id.h"

namespace cuaudit::faults {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t RoundUp(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

static_assert(driver::kBaseCount <= kHostThreadOccurrences);

}  // namespace

const char* FormatHeader(const JournalOptions& options, JournalHeader* header) noexcept {
  if (options.record_capacity == 0 || options.record_capacity > (std::size_t{1} << 32) || options.stack_depth > kMaxFrames) {
    errno = EINVAL;
    return "journal options out of range";
  }
  const std::size_t modules = RoundUp(sizeof(JournalHeader));
  const std::size_t stacks = modules + RoundUp(kMaxModules * sizeof(ModuleRow));
  const std::size_t python = stacks + RoundUp(kMaxStacks * sizeof(StackRow));
  const std::size_t records = python + RoundUp(kMaxPythonFunctions * sizeof(PythonRow));
  memcpy(header->magic, kJournalMagic, sizeof(kJournalMagic));
  header->version = kJournalVersion;
  header->header_bytes = sizeof(JournalHeader);
  header->table_digest = driver::TableDigest();
  header->file_bytes = records + RoundUp(options.record_capacity * sizeof(Record));
  header->record_capacity = options.record_capacity;
  header->modules_offset = modules;
  header->stacks_offset = stacks;
  header->python_offset = python;
  header->records_offset = records;
  header->stack_depth.store(options.stack_depth);
  header->flags.store(options.stacks_of_objects_only ? std::uint32_t{kStacksOfObjectsOnly} : 0U);
  return nullptr;
}

const char* CreateJournal(const char* path, const JournalOptions& options) noexcept {
  alignas(JournalHeader) unsigned char bytes_of_header[sizeof(JournalHeader)] = {};
  JournalHeader* header = ::new (static_cast<void*>(bytes_of_header)) JournalHeader{};
  if (const char* wrong = FormatHeader(options, header)) return wrong;

  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
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
