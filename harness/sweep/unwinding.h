// SPDX-License-Identifier: MIT
// unwinding.h: which calls a program makes while it unwinds from the faults of a trial, and how each of them can fail in turn.
//
//   Owns      its texts.
//   Threads   pure.
//   Errors    none. What is left out is counted by reason.
//   Faults    makes no driver calls.
//   Source    design section 7, step 2, second order.
//
// Unwinding are all fallible calls after the last fault, up to the end of the cycle where the program marks its cycles. A release fails in
// two ways: refused, and the object lives on; after, and it is gone. Other calls are refused.
//
// On its way back, until it acquires something again, a program knows that it has failed: a call in the same place with the same objects
// alive may be treated otherwise than in the fault-free run, so it is tried once for all first faults that lead there. After that a call
// in a state (call_state.h) in which the fault-free run makes it too is not tried: the program has recovered, and a first fault there told
// all that a second one could. What the first fault lost for good does not count for that. So the second order costs what programs do on
// the way back, not what they do afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "harness/sweep/call_state.h"
#include "harness/sweep/observation.h"

namespace cuaudit::harness {

struct NextFault {
  std::string fault;        // text
  std::uint64_t site = 0;   // where it is to hit
  std::uint64_t state = 0;  // in which state; 0: unknown
  faults::Phase phase = faults::Phase::Any;
};

struct LeftOut {
  NextFault fault;
  std::string why;
};

struct Unwinding {
  std::vector<NextFault> faults;                // in the order of the calls
  std::vector<LeftOut> left_out;                // that cannot be tried
  std::map<std::string, std::uint64_t> pruned;  // reason -> faults
};

// Every state in which the fault-free run makes a call.
using States = std::unordered_set<std::uint64_t>;
[[nodiscard]] States AllStates(const CallStates& calls);

// Call stacks from which some fault-free run makes a call.
using Places = std::unordered_set<std::uint64_t>;

// `faults`: how many the trial had. `first`: the states of the rehearsal. Without `prune` every call after the last fault counts. `by_site`
// given: faults are addressed by place, those of the thread that was hit counted from where it was.
[[nodiscard]] Unwinding FaultsWhileUnwinding(const Observation& rehearsal, const States& first, const Observation& trial,
                                             std::size_t faults, bool prune, const Places* by_site = nullptr);

}  // namespace cuaudit::harness
