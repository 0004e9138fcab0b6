// SPDX-License-Identifier: MIT
// unwinding_shape.h: what two unwindings must have in common so that second faults of one stand for those of the other.
//
//   Errors    none. What cannot be compared has the shape 0, which equals no shape.
//
// A shape is the sequence of calls after the failing call: call and call stack, phase, whether it succeeded, and which kinds of objects
// from which acquire sites it released. It ends with what the trial lost, by kind and acquire site. Which turn of a loop failed, the
// marked cycle and the number of live objects are in no shape; call_state.h has those. A turn of a loop on the way back that repeats
// itself more than three times in a row counts as three.
//
// No shape: several threads, a call without a call stack, and a call from an interpreter or from code that is in no file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/sweep/plan/call_state.h"

namespace cuaudit::harness {

struct UnwindingShape {
  std::uint64_t shape = 0;
  std::vector<std::uint64_t> steps;  // one per call: what it does, and the how many-th time up to three; empty without a shape
};

// `calls` are those after the failing call, in order. `lost` marks objects by index in the ledger (LostBeyond).
[[nodiscard]] UnwindingShape ShapeOf(const Evidence& trial, std::span<const CallState* const> calls, const std::vector<bool>& lost);

// `sequence` with every repetition of the same turn beyond the third left out.
[[nodiscard]] std::vector<std::uint64_t> WithoutRepeats(std::span<const std::uint64_t> sequence);

}  // namespace cuaudit::harness
