// SPDX-License-Identifier: MIT
// memory_journal.h: a journal in memory of this process, which is emptied and used again for one trial after another.
//
//   Owns      the mapping. Journals and views borrow from it.
//   Threads   as Journal. Nobody may append during Clear. One thread at a time may call Drain, also while others append.
//   Errors    Open returns a static phrase. A full journal drops records, as a file does.
//
// Clear takes time in proportion to what was used. Modules and call stacks stay, so that stack ids mean the same in every trial.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "faults/journal/journal.h"
#include "faults/journal/journal_file.h"
#include "faults/journal/journal_view.h"

namespace cuaudit::faults {

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
