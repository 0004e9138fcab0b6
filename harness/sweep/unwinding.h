// SPDX-License-Identifier: MIT
// unwinding.h: which calls a program makes while it unwinds from the faults of a trial, and how each of them can fail in turn.
//
//   Owns      its texts.
//   Threads   pure.
//   Errors    none. What is left out is counted by reason.
//   Faults    makes no driver calls.
//
// Unwinding are all fallible calls after the last fault, up to the end of the cycle where the program marks its cycles. A release fails in
// two ways: refused, and the object lives on; after, and it is gone. Other calls are refused.
//
// What stands for what (Prune::Second). A fault on the way back, until the program acquires something again, is tried once for each state
// (call_state.h) and each first fault that the rehearsal cannot tell apart from it by state: of two turns of a loop that begin with the
// same objects alive, neither stands for the other; of the ways back from a loop that gathers objects, each step is tried once, not once
// for each turn that leads there. After that a call in a state in which a first fault is tried the same way is not tried: the program has
// recovered. What the first fault lost for good does not count for that.
//
// Where an interpreter or generated code is in the call stack, the stack does not tell the program's line. There nothing stands for the way
// back from another first fault, and a program has recovered only where all that it goes on to do, to the end of the run or cycle, is what
// the fault-free run does too. A program with several threads has no states: a place stands for itself, once for each place of a first
// fault.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "harness/sweep/call_state.h"
#include "harness/sweep/observation.h"
#include "harness/sweep/prune.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

struct PlannedFaults;

struct NextFault {
  std::string fault;        // text
  std::uint64_t site = 0;   // where it is to hit
  std::uint64_t state = 0;  // equal ones stand for one another; 0: unknown
  faults::Phase phase = faults::Phase::Any;
  bool on_the_way_back = true;  // false: the program has acquired something since
};

struct LeftOut {
  NextFault fault;
  Reason why = Reason::None;
};

struct Unwinding {
  std::vector<NextFault> faults;  // in the order of the calls
  std::vector<LeftOut> left_out;  // that cannot be tried
  Tally pruned;
};

// What a second fault is compared with.
class FirstFaults {
 public:
  FirstFaults() = default;
  FirstFaults(const CallStates& rehearsal, const PlannedFaults& plan);

  // Whether a first fault is tried in that state, in the way that `fault` names.
  bool Tried(const std::string& fault, std::uint64_t state) const;
  // Which of the calls in its state the first fault hits, counted from 1; 0: it hits a call in no known state, or none of the rehearsal.
  std::uint32_t TurnOf(const faults::Fault& fault) const;
  // The states of a cycle's calls, in order.
  std::span<const std::uint64_t> StatesIn(std::uint32_t cycle) const;

 private:
  std::unordered_set<std::uint64_t> ways_;
  std::unordered_map<std::uint64_t, std::uint32_t> turns_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> states_;
};

// Call stacks from which some fault-free run makes a call.
using Places = std::unordered_set<std::uint64_t>;

// `faults`: the texts of the trial's faults. `first`: those of the rehearsal. With Prune::None every call after the last fault counts.
// `by_site` given: faults are addressed by place, those of the thread that was hit counted from where it was.
[[nodiscard]] Unwinding FaultsWhileUnwinding(const Rehearsed& rehearsal, const FirstFaults& first, const Observation& trial,
                                             std::span<const std::string> faults, Prune prune, const Places* by_site = nullptr);

}  // namespace cuaudit::harness
