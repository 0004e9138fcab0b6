// SPDX-License-Identifier: MIT
// recording.h: reads the slots of a recording (`cuaudit record`): which records are whole, and from when on none is missing.
//
//   Units     tickets of the journal's clock; times are hundredths of a second since JournalHeader::started.
//   Errors    none: whatever the slots hold, records that do not have their check are left out and counted.
//
// The fold needs all records from one moment on. So what lies before the last record that made room is left out, too, although the file may
// still have some of it.
#pragma once

#include <cstdint>
#include <vector>

#include "faults/journal/journal_view.h"

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

}  // namespace cuaudit::harness
