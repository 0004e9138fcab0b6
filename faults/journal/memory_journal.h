// SPDX-License-Identifier: MIT
// memory_journal.h: a journal in memory of this process, emptied and used again for one trial after another.
//
//   Owns      its mapping. Journal and views borrow from it.
//   Threads   as Journal. Clear while somebody appends is the caller's bug; Drain may be called by one thread at any time.
//   Units     records.
//   Errors    Open answers a static phrase. A full journal drops records as a file does.
//   Faults    makes no driver calls.
//   Source    ours. Clearing costs what was used; modules and call stacks stay, so that stack ids mean the same in every trial.
#pragma once

#include <cstdint>
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

  // `shared`: processes forked later append to the same records.
  [[nodiscard]] const char* Open(const JournalOptions& options, bool shared) noexcept;
  Journal* journal() noexcept { return &journal_; }
  // Of what has been written up to now.
  JournalView View() const noexcept;
  // Records and counters as if newly made.
  void Clear() noexcept;
  // Moves to the end of `records` what is complete, in the order in which it was begun; the clock goes on. Answers how many records have
  // been dropped since the last time. A call under way keeps its record for the next time; while there is one, the room of the others is
  // not used again.
  std::uint64_t Drain(std::vector<Record>* records);

 private:
  bool TakeIfComplete(std::uint64_t slot, std::vector<Record>* records);

  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  Journal journal_;
  std::vector<std::uint64_t> under_way_;  // slots below looked_at_ that Drain could not take; all others there are empty
  std::uint64_t looked_at_ = 0;
};

}  // namespace cuaudit::faults
