// SPDX-License-Identifier: MIT
// host_loss.h: finds the places where a faulted cycle keeps more host resources than a good cycle, each time it is run.
//
//   Units     objects and bytes beyond a good cycle's; the minimum over all repeats.
//
// README.md says why a trial is repeated before a loss is reported.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/lifecycle/host_records.h"
#include "harness/lifecycle/trial_trace.h"
#include "harness/sweep/run/trial.h"
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

}  // namespace cuaudit::harness
