// SPDX-License-Identifier: MIT
// call_state.h: the calls of the fault-free runs as faults address them: by the state in which the program makes each, or, for a case whose
// calls have no fixed order, by place and turn. Faults in equal states count as one for pruning.
//
//   Owns      its rows, which borrow the records of the journals.
//   Errors    none. An unknown state is 0 and equals no state.
//
// A state consists of the marked cycle, the phase, the place (call and call stack), and the number of live driver objects of each kind from
// each acquire site. Host blocks are excluded, because an error message would make every state after a fault a new one.
//
// By place and turn: the n-th call from one call stack happens whichever thread makes it, if the program comes there n times. At each place
// the turns that every run took are certain; at a place that only some runs reach, only the first turn is. Further turns are listed as
// unsure, because a fault for them might find nothing to hit. README.md ("Drift") says which turns stand for others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {

struct CallState {
  const faults::Record* record = nullptr;
  std::uint64_t site = 0;   // SiteKey; 0 when the journal's table had no room for the call stack
  std::uint32_t turn = 0;   // number of the call from that site, from 1
  std::uint64_t state = 0;  // 0: unknown stack, or several threads make calls
  bool unsure = false;      // not every fault-free run comes here that often
  bool again = false;       // with several threads: one of many turns, which earlier turns stand for
  // An interpreter or generated code is in the call stack, so the stack stands for many lines of the program.
  bool interpreted = false;
  bool declined = false;  // the driver itself does not carry it out, in any fault-free run that comes here
};

struct CallStates {
  std::vector<CallState> calls;  // own records in the order of their begin; with several threads by name and occurrence
  bool threaded = false;
};

enum class StatesAre : std::uint8_t { Exact, Coarse };  // coarse: cycles are not told apart, and counts are none, one, two or many

// The states of all calls of the program itself. `without` marks objects, by index in the ledger, that do not count; empty: all count.
[[nodiscard]] CallStates StatesOf(const Evidence& run, const std::vector<bool>& without = {}, StatesAre states = StatesAre::Exact);

// Marks the objects of a trial that are left beyond what the rehearsal leaves at the same place. The program has lost them, so they do not
// change what it does later. Not lost is what the program left to its own context, until the context ends: when that end is refused, it is
// left.
[[nodiscard]] std::vector<bool> LostBeyond(const Rehearsed& rehearsal, const Evidence& trial);

// In the order of the first run, then calls that only later runs have. With several threads: by name, place and turn.
[[nodiscard]] CallStates SitedCalls(std::span<const CallStates> runs);

}  // namespace cuaudit::harness
