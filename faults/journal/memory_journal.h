// SPDX-License-Identifier: MIT
// memory_journal.h: a journal in memory of this process, emptied and used again for one trial after another.
//
//   Owns      its mapping. Journal and views borrow from it.
//   Threads   as Journal. Clear while somebody appends is the caller's bug.
//   Units     records.
//   Errors    Open answers a static phrase. A full journal drops records as a file does.
//   Faults    makes no driver calls.
//   Source    ours. Clearing costs what was used; modules and call stacks stay, so that stack ids mean the same in every trial.
#pragma once

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

  // `shared`: processes forked later append to the same records.
  [[nodiscard]] const char* Open(const JournalOptions& options, bool shared) noexcept;
  Journal* journal() noexcept { return &journal_; }
  // Of what has been written up to now.
  JournalView View() const noexcept;
  // Records and counters as if newly made.
  void Clear() noexcept;

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  Journal journal_;
};

}  // namespace cuaudit::faults
