// SPDX-License-Identifier: MIT
// host_growth.h: finds the places where clean cycles keep more and more host resources, with the host drop-in.
//
//   Threads   one thread.
//   Units     objects alive at the end of a cycle; exact.
//   Errors    none. When the run with stacks cannot be made, `why_not` says why.
//
// The cycles run without stacks first, because a stack costs ten times as much as counting a block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/lifecycle/host_records.h"
#include "harness/lifecycle/trial_trace.h"
#include "harness/verdict/judge.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// `counts` holds one count after each cycle. The count at the end of the warm-up and those of the later cycles.
template <typename Count>
std::vector<Count> AfterWarmUp(std::span<const Count> counts, std::uint32_t warm_up) {
  return {counts.begin() + std::max(warm_up, 1U) - 1, counts.end()};
}
template <typename Count>
std::string AliveText(std::span<const Count> counts) {
  std::string text = "alive after each cycle:";
  for (const Count count : counts) text.append(" ").append(std::to_string(count));
  return text;
}

// After a run without stacks, with one span per cycle: false when more was alive at once than the drop-in follows.
bool AllWasSeen(const HostRecords& records, const std::vector<HostSpan>& spans);
// True when some cycle after the warm-up kept something, or misused a mutex.
bool MayGrow(const HostRecords& records, const std::vector<HostSpan>& spans, std::uint32_t warm_up);

inline constexpr char kMoreThanFollowed[] = "more at once than are followed";
struct HostGrown {
  faults::JournalView host;
  std::vector<TrialFinding> findings;  // rules growth, bounded, mutex_freed and mutex_locked
  std::string why_not;                 // why nothing can be said
};
// Runs the cycles again with stacks, in another world. With `blocks` heap blocks are judged, too.
HostGrown GrownByPlace(const Lifecycle& lifecycle, const CycleOptions& options, bool blocks, HostRecords* records);

}  // namespace cuaudit::harness
