// SPDX-License-Identifier: MIT
// cycle_slices.h: one run with many marked cycles as many runs: what each trial's own run would have written.
//
//   Owns      a copy of the facts; the bytes of the journal must outlive it. A slice holds on to its run.
//   Threads   pure.
//   Units     cycles, counted from 1; tickets of the journal's clock.
//   Errors    none; a cycle that the run never came to has no slice.
//   Faults    makes no driver calls.
//
// A slice of cycle k is: all before the first cycle that had a fault, cycle k, the clean cycle after it, and all after the last cycle.
// What lies between are cycles that left nothing behind, else the slice is not to be used (Clean). Cycle k is renumbered as the cycle of
// the rehearsal that it stands for, its calls likewise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/sweep/observation.h"

namespace cuaudit::harness {

class Cycles {
 public:
  explicit Cycles(const Evidence& run);

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(facts_.cycles.size()); }
  bool Ended(std::uint32_t cycle) const noexcept { return cycle <= count() && cycle > 0 && EndOf(cycle) != 0; }
  std::uint64_t BeginOf(std::uint32_t cycle) const noexcept { return facts_.cycles[cycle - 1].begin; }
  std::uint64_t EndOf(std::uint32_t cycle) const noexcept { return facts_.cycles[cycle - 1].end; }
  // Of the calls in a cycle: entry point, call stack and result, in order.
  std::uint64_t TraceOf(std::uint32_t cycle) const;
  // The n-th call of an entry point by the program, null: there is none.
  const faults::Record* CallOf(driver::BaseId base, std::uint32_t occurrence) const;
  // How often `base` was called before the cycle began.
  std::uint32_t CallsBefore(std::uint32_t cycle, driver::BaseId base) const;

 private:
  faults::JournalView journal_;
  Facts facts_;
};

// The first cycle from which on all of the rehearsal's do the same; 0: there are not two such cycles.
std::uint32_t SteadyFrom(const Cycles& rehearsal);

// Cycle `cycle` of `run` as cycle `as` of a run of its own. `first`: the first cycle of the run that had a fault. With `last` all that the
// run did from that cycle on belongs to it.
Observation SliceOf(const std::shared_ptr<const Observation>& run, const Cycles& cycles, std::uint32_t first, std::uint32_t cycle,
                    std::uint32_t as, const Cycles& rehearsal, bool last);

// Whether the trials after the one in `cycle` are their own: the clean cycle behind it did what the rehearsal's cycle `as` does and left
// nothing, and what `cycle` itself left (a leak, a release that was refused) no later call has anything to do with.
bool MayGoOn(const Observation& run, const Cycles& cycles, std::uint32_t cycle, std::uint32_t as, const Cycles& rehearsal);

}  // namespace cuaudit::harness
