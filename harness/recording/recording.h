// SPDX-License-Identifier: MIT
// recording.h: reads a recording (`cuaudit record`): which records are whole, what the program held before it, and who still writes to it.
//
//   Units     tickets of the journal's clock; times are hundredths of a second since JournalHeader::started.
//   Errors    none: whatever the slots hold, records that do not have their check are left out and counted.
//
// The fold needs all records from one moment on. So what lies before the last record that made room is left out, too, although the file may
// still have some of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "faults/driver/kinds.h"
#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

struct Recording {
  std::vector<faults::Record> records;  // in the order in which they were begun
  std::vector<std::uint32_t> times;     // when each was begun

  std::uint64_t torn = 0;       // their process was killed while it wrote them
  std::uint64_t damaged = 0;    // they are not what was written
  std::uint64_t dropped = 0;    // there was no room for them at all
  bool counts_unknown = false;  // packed by an earlier tool, which forgot how many were torn and damaged
  // Of each ring: records that made room or are older than the window, and the highest ticket among them; 0: the ring is whole.
  std::uint64_t gone[faults::kRings] = {};
  std::uint64_t gone_until[faults::kRings] = {};

  // All that changed what the program held is here.
  bool WholeOfWhatLasts() const { return gone_until[faults::kLasting] == 0 && Undamaged(); }
  bool Whole() const { return WholeOfWhatLasts() && gone_until[faults::kPassing] == 0 && torn == 0 && !counts_unknown; }
  bool Undamaged() const { return damaged == 0 && dropped == 0; }
};

inline bool IsRecording(const faults::JournalView& journal) { return (journal.header().flags.load() & faults::kRecording) != 0; }

// `journal` is a recording that was opened. `window` in hundredths of a second, in place of the recording's own; 0: that one.
Recording ReadRecording(const faults::JournalView& journal, std::uint32_t window = 0);

// Objects that a program held before a recording begins, as far as the recording shows them: it saw their release.

// Releases that succeeded and that ended no object of the ledger, by kind. They say how much of what a kind gained was only its
// replacement.
std::map<driver::Kind, std::uint64_t> HeldBefore(const faults::JournalView& journal, const Ledger& ledger);

// Removes the violations that a ledger can only tell when it has seen everything: counts of references and of the context stack.
void DropWhatNeedsTheBeginning(Ledger* ledger);

// Removes what only a process that ends by itself can do wrong: a context stack that it had no time to empty.
void DropWhatNeedsTheEnd(Ledger* ledger);

// Processes that still write into a recording.
//
//   Errors    none: a process that cannot be looked into counts when the recording names it and has no end of it.

// A living process, other than this one, that has the file mapped in order to write to it; nothing when there is none.
std::optional<pid_t> WriterOf(const std::string& path, const Recording& recording);

// Cuts a journal down to what it holds, so that it is small enough to send.
//
// The result has the same format. It has only the records that are whole, in their order, the call stacks of these, and the modules and
// Python functions of those. Nobody can append to it.

// The bytes of the packed journal of a run, which keeps all its modules. No process may write `journal` any more.
std::string PackJournal(const faults::JournalView& journal);

// The same, without arguments that are data of the program (faults::IsData): for people who send it.
std::string PackWithoutData(const faults::JournalView& journal);

// The bytes of the packed recording. `recording` was read from `journal`.
std::string PackRecording(const faults::JournalView& journal, const Recording& recording);

}  // namespace cuaudit::harness
