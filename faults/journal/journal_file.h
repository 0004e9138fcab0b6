// SPDX-License-Identifier: MIT
// journal_file.h: makes an empty journal: a file for the programs that will append to it, or only the header for a journal in memory.
//
// The file belongs to the caller. It is sparse: 4 Mi records of capacity take no disk space until they are written.
// Functions return null on success, otherwise a static phrase, with errno set by the failing system call. A failure leaves no partial
// file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "faults/journal/journal.h"
#include "faults/journal/journal_view.h"
#include "faults/journal/layout.h"

namespace cuaudit::faults {

struct JournalOptions {
  std::size_t record_capacity = kDefaultRecordCapacity;
  std::uint32_t stack_depth = 16;       // frames kept per call, at most kMaxFrames; 0: no stacks
  bool stacks_of_objects_only = false;  // take stacks only for injected calls and for calls that acquire or release
  bool recording = false;               // `record_capacity` slots in rings (recording.h)
  std::uint32_t window = 0;             // JournalHeader::window
  const char* tool_version = "";
};

// The number of slots of a recording whose file is at most so long; 0: too short for any.
[[nodiscard]] std::size_t SlotsWithin(std::uint64_t file_bytes) noexcept;

// Makes the header of an empty journal. Its file_bytes is the size of header, tables and records together. Returns null, or what is
// wrong with the options.
[[nodiscard]] const char* FormatHeader(const JournalOptions& options, JournalHeader* header) noexcept;

// An existing file is emptied, but not by `fresh`: then it is an error (EEXIST).
[[nodiscard]] const char* CreateJournal(const char* path, const JournalOptions& options, bool fresh = false) noexcept;

// A journal in memory of this process, which is emptied and used again for one trial after another.
//
//   Owns      the mapping. Journals and views borrow from it.
//   Threads   as Journal. Nobody may append during Clear. One thread at a time may call Drain, also while others append.
//   Errors    Open returns a static phrase. A full journal drops records, as a file does.
//
// Clear takes time in proportion to what was used. Modules and call stacks stay, so that stack ids mean the same in every trial.

class MemoryJournal {
 public:
  MemoryJournal() = default;
  ~MemoryJournal();
  MemoryJournal(const MemoryJournal&) = delete;
  MemoryJournal& operator=(const MemoryJournal&) = delete;

  // `shared`: processes that are forked later append to the same records.
  [[nodiscard]] const char* Open(const JournalOptions& options, bool shared) noexcept;
  Journal* journal() noexcept { return &journal_; }
  // A view of what has been written so far.
  JournalView View() const noexcept;
  // Resets records and counters to those of a new journal.
  void Clear() noexcept;
  // Appends the complete records to `records`, in the order in which they were begun, and removes them from the journal. The clock goes
  // on. Returns the number of records dropped since the last Drain. The record of a call in progress stays for the next Drain; until
  // then the space of the other records is not reused.
  std::uint64_t Drain(std::vector<Record>* records);

 private:
  bool TakeIfComplete(std::uint64_t slot, std::vector<Record>* records);

  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  Journal journal_;
  std::vector<std::uint64_t> under_way_;  // slots below looked_at_ that were not complete; all other slots below it are empty
  std::uint64_t looked_at_ = 0;
};

// A cache of keys of places, shared by all journals that share their tables of modules and call stacks. It saves work: a key
// walks a call stack and hashes the build id of each module on it.
//
// A KeyMemo is used by one thread. A call stack that was not completely written has no entry.

struct KeyMemo {
  std::unordered_map<std::uint64_t, std::uint64_t> site_keys;  // by call stack, call and kind of record
};

}  // namespace cuaudit::faults
