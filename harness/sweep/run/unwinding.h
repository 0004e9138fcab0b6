// SPDX-License-Identifier: MIT
// unwinding.h: lists the calls that a program makes while it unwinds from the faults of a trial, and how each of them can fail; and what
// two unwindings must have in common so that second faults of one stand for those of the other.
//
//   Errors    none. What is left out is counted by reason. What cannot be compared has the shape 0, which equals no shape.
//
// README.md says which second faults are tried, and what the shape of an unwinding is.
//
// A program with several threads has no states: each place is tried once for each place of a first fault. In no shape are the turn of a
// loop that failed, the marked cycle and the number of live objects; call_state.h has those.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "faults/plan/fault.h"
#include "harness/sweep/plan/call_state.h"
#include "harness/sweep/plan/make_plan.h"
#include "harness/sweep/run/observation.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

struct NextFault {
  faults::Fault fault;
  std::uint64_t site = 0;   // where it is planned to hit
  std::uint64_t state = 0;  // faults with equal keys stand for one another; 0: unknown
  faults::Phase phase = faults::Phase::Any;
  bool on_the_way_back = true;  // false: the program has acquired something since
  std::uint64_t step = 0;       // the same step of unwindings with one shape
};

struct LeftOut {
  NextFault fault;
  Reason why = Reason::None;
};

struct Unwinding {
  std::vector<NextFault> faults;  // in the order of the calls
  std::vector<LeftOut> left_out;  // faults that cannot be tried
  Tally pruned;
  std::uint64_t shape = 0;  // with the ways of the faults before it; 0: unlike every other, or nothing is pruned
};

// The first faults of a sweep, with which second faults are compared.
class FirstFaults {
 public:
  FirstFaults() = default;
  FirstFaults(const CallStates& rehearsal, const PlannedFaults& plan);

  // True when a first fault is tried in that state, in the way that `fault` names.
  bool Tried(const faults::Fault& fault, std::uint64_t state) const;
  // Which of the calls in one state the first fault hits, counted from 1; 0 when the call has no known state or is not in the rehearsal.
  std::uint32_t TurnOf(const faults::Fault& fault) const;
  // The states of the calls in a cycle, in order.
  std::span<const std::uint64_t> StatesIn(std::uint32_t cycle) const;

 private:
  std::unordered_set<std::uint64_t> ways_;
  std::unordered_map<std::uint64_t, std::uint32_t> turns_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> states_;
};

// Call stacks from which some fault-free run makes a call.
using Places = std::unordered_set<std::uint64_t>;

// True when an earlier trial of the plan stands for this one: the way back from there has the same state.
using Claimed = std::function<bool(const NextFault& next)>;

// `faults` holds the texts of the trial's faults, `first` the first faults of the sweep. With Pruning::None every call after the last fault
// counts. With `by_site` faults are addressed by place; on the thread that was hit they are counted from the previous fault. What `claimed`
// says true of is counted, and not kept: a loop has many ways back and few new ones.
[[nodiscard]] Unwinding FaultsWhileUnwinding(const Rehearsed& rehearsal, const FirstFaults& first, const Observation& trial,
                                             std::span<const std::string> faults, Pruning prune, const Places* by_site = nullptr,
                                             const Claimed& claimed = {});

struct UnwindingShape {
  std::uint64_t shape = 0;
  std::vector<std::uint64_t> steps;  // one per call: what it does, and the how many-th time up to three; empty without a shape
};

// `calls` are those after the failing call, in order. `lost` marks objects by index in the ledger (LostBeyond).
[[nodiscard]] UnwindingShape ShapeOf(const Evidence& trial, std::span<const CallState* const> calls, const std::vector<bool>& lost);

// `sequence` with every repetition of the same turn beyond the third left out.
[[nodiscard]] std::vector<std::uint64_t> WithoutRepeats(std::span<const std::uint64_t> sequence);

}  // namespace cuaudit::harness
