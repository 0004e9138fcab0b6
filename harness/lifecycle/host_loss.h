// SPDX-License-Identifier: MIT
// host_loss.h: places at which a faulted cycle keeps more of the host than a good one does, each time it is run.
//
//   Owns      its counts.
//   Threads   values; no shared state.
//   Units     objects and bytes beyond a good cycle's, the least of all repeats.
//   Errors    never fails.
//   Faults    makes no driver calls.
//   Source    ours; README.md of this room says why a trial is repeated before anything is said.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/lifecycle/host_records.h"
#include "harness/lifecycle/trial_trace.h"
#include "harness/sweep/trial.h"
#include "harness/verdict/judge.h"

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
  // Without stacks: whether there is anything to look for. `blocks`: heap blocks are asked about.
  static bool MayBe(const HostKept& trial, const HostKept& good, bool blocks);

  // `descriptors`: a meter says that they are kept. `good`: of a run with stacks, as those of Repeat.
  HostLoss(HostKept good, bool blocks, bool descriptors) : good_(std::move(good)), blocks_(blocks), descriptors_(descriptors) {}
  // The first run with stacks is for nothing but what it gives back in the next: see README.md.
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

// The findings in words, by the journal of the host drop-in. What GoogleTest keeps of an expectation that failed is no loss: it is left
// out and added to `of_googletest`.
std::vector<TrialFindingText> HostTexts(const std::vector<TrialFinding>& findings, const faults::JournalView& host, SiteTexts* sites,
                                        std::size_t* of_googletest);

// "leak" or "mutex_freed" at a place of the host drop-in's journal.
TrialFinding HostFinding(const HostPlaceKey& key, const HostTally& tally, const faults::JournalView& host);

}  // namespace cuaudit::harness
