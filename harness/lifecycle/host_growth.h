// SPDX-License-Identifier: MIT
// host_growth.h: places at which clean cycles keep more and more of the host, by the host drop-in.
//
//   Threads   one thread.
//   Units     objects alive at the end of a cycle; exact.
//   Errors    none: a run with stacks that cannot be made answers nothing, and says so.
//   Faults    makes no driver calls but the lifecycle's.
//   Source    ours. The cycles run without stacks first: a stack costs ten times what it takes to count a block.
#pragma once

#include <string>
#include <vector>

#include "harness/lifecycle/host_records.h"
#include "harness/lifecycle/trial_trace.h"
#include "harness/verdict/judge.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// After a run without stacks, one span of each cycle: false when more was alive at once than is followed.
bool AllWasSeen(const HostRecords& records, const std::vector<HostSpan>& spans);
// Whether any cycle after the warm-up kept something, or did wrong by a mutex.
bool MayGrow(const HostRecords& records, const std::vector<HostSpan>& spans, std::uint32_t warm_up);

inline constexpr char kMoreThanFollowed[] = "more at once than are followed";
struct HostGrown {
  faults::JournalView host;
  std::vector<TrialFinding> findings;  // rules growth, mutex_freed and mutex_locked
  std::string why_not;                 // nothing can be said of it
};
// Runs the cycles again, in another world, with stacks. `blocks`: heap blocks are asked about.
HostGrown GrownByPlace(const Lifecycle& lifecycle, const CycleOptions& options, bool blocks, HostRecords* records);

}  // namespace cuaudit::harness
