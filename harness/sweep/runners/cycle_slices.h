// SPDX-License-Identifier: MIT
// cycle_slices.h: cuts one run with many marked cycles into one slice per trial, as if each trial had its own run.
//
//   Owns      a copy of the facts. The bytes of the journal must outlive it. A slice keeps its run alive.
//   Units     cycles, counted from 1; tickets of the journal's clock.
//   Errors    none. A cycle that the run never reached has no slice.
//
// The slice of cycle k has everything before the first cycle with a fault, cycle k, the clean cycle after it, and everything after the last
// cycle. The cycles left out must have left nothing behind, or the slice is not used (MayGoOn). Cycle k gets the number of the rehearsal's
// cycle that it stands for, and its calls are renumbered likewise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/sweep/run/observation.h"

namespace cuaudit::harness {

class Cycles {
 public:
  explicit Cycles(const Evidence& run);

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(facts_.cycles.size()); }
  bool Ended(std::uint32_t cycle) const noexcept { return cycle <= count() && cycle > 0 && EndOf(cycle) != 0; }
  std::uint64_t BeginOf(std::uint32_t cycle) const noexcept { return facts_.cycles[cycle - 1].begin; }
  std::uint64_t EndOf(std::uint32_t cycle) const noexcept { return facts_.cycles[cycle - 1].end; }
  // Hash over the calls of a cycle in order: entry point, call stack and result.
  std::uint64_t TraceOf(std::uint32_t cycle) const;
  // The n-th call of an entry point by the program; null when there is none.
  const faults::Record* CallOf(driver::BaseId base, std::uint32_t occurrence) const;
  // Number of calls of `base` before the cycle began.
  std::uint32_t CallsBefore(std::uint32_t cycle, driver::BaseId base) const;

 private:
  faults::JournalView journal_;
  Facts facts_;
};

// The first cycle from which all cycles of the rehearsal do the same; 0 when there are fewer than two such cycles.
std::uint32_t SteadyFrom(const Cycles& rehearsal);

// The slice of `run` in which cycle `cycle` becomes cycle `as`. `first` is the first cycle of the run with a fault. With `last` the slice
// has everything from its cycle on.
Observation SliceOf(const std::shared_ptr<const Observation>& run, const Cycles& cycles, std::uint32_t first, std::uint32_t cycle,
                    std::uint32_t as, const Cycles& rehearsal, bool last);

// True when the trials after the one in `cycle` are unaffected by it: the clean cycle afterwards does what the rehearsal's cycle `as` does
// and leaves nothing, and no later call names what `cycle` left (a leak, a refused release).
bool MayGoOn(const Observation& run, const Cycles& cycles, std::uint32_t cycle, std::uint32_t as, const Cycles& rehearsal);

}  // namespace cuaudit::harness
