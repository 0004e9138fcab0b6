// SPDX-License-Identifier: MIT
// call_state.h: in which state a program makes each of its calls: by what two faults are one.
//
//   Owns      its rows; they borrow the records of the journal.
//   Threads   pure.
//   Errors    none. A state that cannot be known is 0, and nothing is the same as it.
//   Faults    makes no driver calls.
//
// A state is a marked cycle, a phase, a place (call and call stack) and the driver objects alive there: how many of each kind from each
// acquire site. Host blocks do not count: what a program allocates to say what went wrong would make every state after a fault a new one.
// It is all that a journal knows, not all that a program knows: a loop's index or a setting is in no state. So by default nothing but
// second faults is left out because of equal states (make_plan.h), and what is left out is told.
//
// StatesAre::Coarse is for whoever chooses to bet more: cycles are not told apart, and counts up to two only: none, one, two, many.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/verdict/judge.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {

struct CallState {
  const faults::Record* record = nullptr;
  std::uint64_t site = 0;   // SiteKey, 0 when the journal's table had no room for the call stack any more
  std::uint32_t turn = 0;   // which call from that site, counted from 1
  std::uint64_t state = 0;  // 0: its call stack is unknown, or several threads take turns
  bool unsure = false;      // not every fault-free run comes to this place that often (sited_calls.h)
  bool again = false;       // of several threads that come here often, one more turn: the earlier ones stand for it
  // An interpreter or generated code is in the call stack: the same stack for many lines of the program.
  bool interpreted = false;
};

struct CallStates {
  std::vector<CallState> calls;  // of the journal's own records, as they began; a program with several threads has no such order that
                                 // holds: then by name and occurrence
  bool threaded = false;
};

enum class StatesAre : std::uint8_t { Exact, Coarse };

// Every call that the program itself made. `without`: by index in the ledger, objects that do not count; empty: all count.
[[nodiscard]] CallStates StatesOf(const Evidence& run, const std::vector<bool>& without = {}, StatesAre states = StatesAre::Exact);

// Of a trial's ledger, the objects that are left beyond those that the rehearsal leaves at the same place: the program has lost them, and
// what it does later is the same with or without them.
[[nodiscard]] std::vector<bool> LostBeyond(const Rehearsed& rehearsal, const Evidence& trial);

}  // namespace cuaudit::harness
