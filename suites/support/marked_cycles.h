// SPDX-License-Identifier: MIT
// marked_cycles.h: traces of programs that mark their cycles and report how each went.
//
//   Threads   one thread.
#pragma once

#include "suites/support/trace.h"

namespace cuaudit::testing {

class MarkedCycles {
 public:
  // A cycle that allocates, frees and reports. The allocation is made at stack 1.
  MarkedCycles& Good() {
    Begin();
    const std::uint64_t address = Address();
    trace.Alloc(address).Stack(1).Cycle(cycle_);
    trace.Free(address).Stack(2).Cycle(cycle_);
    return End(0);
  }
  // The allocation is refused; the cycle says `code`, and whether its output is written.
  MarkedCycles& Failed(std::int32_t code, bool written = false) {
    Begin();
    trace.Alloc(Address()).Refused().Stack(1).Cycle(cycle_);
    if (written) trace.Say(faults::MarkKind::Output, 1).Cycle(cycle_);
    return End(code);
  }
  MarkedCycles& Begin() {
    ++cycle_;
    trace.Mark(faults::MarkKind::CycleBegin).Cycle(cycle_);
    return *this;
  }
  MarkedCycles& End(std::int32_t code) {
    trace.Say(faults::MarkKind::Report, code).Cycle(cycle_);
    trace.Mark(faults::MarkKind::CycleEnd).Cycle(cycle_);
    return *this;
  }
  std::uint32_t cycle() const { return cycle_; }
  std::uint64_t Address() const { return 0x1000U * (cycle_ + 1); }

  Trace trace;

 private:
  std::uint32_t cycle_ = 0;
};

}  // namespace cuaudit::testing
