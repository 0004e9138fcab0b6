// SPDX-License-Identifier: MIT
// call_state.h: in which state a program makes each of its calls: by what two faults are one.
//
//   Owns      its rows; they borrow the records of the journal.
//   Threads   pure.
//   Errors    none. A state that cannot be known is 0, and nothing is the same as it.
//   Faults    makes no driver calls.
//   Source    facts on fault anchors, sections 5 and 8: a fault that hits the same place in the same phase with the same objects alive
//   tells
//             what the first one told.
//
// A state is a phase, a place (call and call stack) and the driver objects alive there: how many of each kind from each acquire site.
// Counts are told apart up to two: none, one, two, many. A loop over slots does something else for the first slot (nothing to unwind yet),
// for the second (one turn to unwind) and perhaps for the third (the turn between the first and the last); what holds for three holds for
// 8,200. Host blocks do not count: what a program allocates to say what went wrong would make every state after a fault a new one.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

struct CallState {
  const faults::Record* record = nullptr;
  std::uint64_t site = 0;   // SiteKey, 0 when the journal's table had no room for the call stack any more
  std::uint32_t turn = 0;   // which call from that site, counted from 1
  std::uint64_t state = 0;  // 0: its call stack is unknown, or several threads take turns
  bool unsure = false;      // not every fault-free run comes to this place that often (sited_calls.h)
  bool again = false;       // of several threads that come here often, one more turn: the earlier ones stand for it
};

struct CallStates {
  std::vector<CallState> calls;  // of the journal's own records, as they began; a program with several threads has no such order that
                                 // holds: then by name and occurrence
  bool threaded = false;
};

// SiteKey of many records: equal (call, stack) pairs are looked up once.
class SiteKeys {
 public:
  explicit SiteKeys(const faults::JournalView& journal) : journal_(&journal) {}
  std::uint64_t Of(const Site& site);

 private:
  const faults::JournalView* journal_;
  std::unordered_map<std::uint64_t, std::uint64_t> keys_;
};

// Several threads or processes call the driver.
[[nodiscard]] bool IsThreaded(const faults::JournalView& journal);

// Every call that the program itself made. `without`: by index in the ledger, objects that do not count; empty: all count.
[[nodiscard]] CallStates StatesOf(const faults::JournalView& journal, const Ledger& ledger, const std::vector<bool>& without = {});

// Of a trial's ledger, the objects that are left beyond those that the rehearsal leaves at the same place: the program has lost them, and
// what it does later is the same with or without them.
[[nodiscard]] std::vector<bool> LostBeyond(const faults::JournalView& rehearsal, const Ledger& rehearsed, const faults::JournalView& trial,
                                           const Ledger& tried);

}  // namespace cuaudit::harness
