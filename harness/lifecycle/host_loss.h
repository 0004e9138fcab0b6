// SPDX-License-Identifier: MIT
// host_loss.h: finds the places where cycles keep more and more host resources: a faulted cycle more than a good one, or clean cycles one
// after another.
//
//   Units     objects and bytes beyond a good cycle's; the minimum over all repeats.
//
// README.md says why a trial is repeated before a loss is reported.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/lifecycle/host_records.h"
#include "harness/lifecycle/trial_trace.h"
#include "harness/sweep/run/trial.h"
#include "harness/verdict/judge.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// What the first cycle of a run kept.
struct HostKept {
  HostNet net;
  HostFold fold;
};
HostKept KeptBy(const HostRecords& records, const HostSpan& span);

class HostLoss {
 public:
  static constexpr std::size_t kRepeats = 9;
  // True when there is something to look for, judged without stacks. With `blocks` heap blocks are judged, too.
  static bool MayBe(const HostKept& trial, const HostKept& good, bool blocks);

  // `good` is from a run with stacks, like the arguments of Repeat. `descriptors`: a meter shows that descriptors are kept.
  HostLoss(HostKept good, bool blocks, bool descriptors) : good_(std::move(good)), blocks_(blocks), descriptors_(descriptors) {}
  // Adds a run with stacks. The first such run must not be added: its purpose is to let the next run name what it releases (README.md).
  void Repeat(const HostKept& trial);
  bool empty() const { return repeats_ != 0 && kept_->empty(); }
  std::vector<TrialFinding> Findings(const faults::JournalView& host) const;

 private:
  bool IsAsked(driver::Kind kind) const;
  HostKept good_;
  bool blocks_;
  bool descriptors_;
  std::size_t repeats_ = 0;
  std::optional<HostPlaces> kept_;  // in every repeat
};

// The text of the findings, by the host drop-in's journal. What GoogleTest keeps of a failed expectation is no loss: it is left out and
// counted in `of_googletest`.
std::vector<TrialFindingText> HostTexts(const std::vector<TrialFinding>& findings, const faults::JournalView& host, SiteTexts* sites,
                                        std::size_t* of_googletest);

// The finding for a place in the host drop-in's journal: "leak", "mutex_freed" or "mutex_locked".
TrialFinding HostFinding(const HostPlaceKey& key, const HostTally& tally, const faults::JournalView& host);

// Finds the places where clean cycles keep more and more host resources, with the host drop-in.
//
//   Threads   one thread.
//   Units     objects alive at the end of a cycle; exact.
//   Errors    none. When the run with stacks cannot be made, `why_not` says why.
//
// The cycles run without stacks first, because a stack costs ten times as much as counting a block.

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
