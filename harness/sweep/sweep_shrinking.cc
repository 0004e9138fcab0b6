// SPDX-License-Identifier: MIT
// The rounds of a SweepEngine that look for the fewest faults of each finding.
#include <algorithm>
#include <utility>

#include "harness/sweep/findings/shrink.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {
namespace {

std::uint64_t HashFaults(const std::vector<std::string>& faults) {
  std::uint64_t hash = kHashSeed;
  for (const std::string& fault : faults) hash = HashText(fault, hash);
  return hash;
}

}  // namespace

// Makes one entry for all findings that a report would merge.
void SweepEngine::FindShrinkable() {
  FaultKinds kinds;
  for (std::size_t index = 0; index < plan_.size(); ++index) {
    const auto result = results_.find(index);
    if (result == results_.end()) continue;  // the sweep ends before it was tried
    trial_of_faults_.emplace(HashFaults(plan_[index].faults), index);
    if (plan_[index].faults.size() == 1) trials_of_way_[WayAt(plan_[index].faults[0], plan_[index].sites[0])].push_back(index);
    TrialResult& trial = result->second;
    if (!CanShrink(trial.faults)) continue;
    for (std::size_t i = 0; i < trial.findings.size(); ++i) {
      const auto [found, fresh] = shrinking_by_group_.emplace(GroupOf(trial, trial.findings[i], &kinds), shrinking_.size());
      if (fresh) shrinking_.push_back({index, i, index, {}, false});
      trial.findings[i].least = static_cast<std::int64_t>(found->second);
    }
  }
}

// Plans every list that is one step smaller and may show a finding: it is known already or becomes a trial of the next round.
void SweepEngine::PlanShrinking() {
  for (Shrinking& one : shrinking_) {
    if (one.settled) continue;
    one.tries.clear();
    const FaultList list = {plan_[one.least].faults, plan_[one.least].sites};
    for (FaultList& smaller : SmallerLists(list)) {
      const auto [known, fresh] = trial_of_faults_.emplace(HashFaults(smaller.faults), plan_.size());
      // A fault counted from a previous fault cannot come first. A place that only unwinding reaches cannot be reached without a previous
      // fault.
      const bool alone = !Follows(smaller.faults.front());
      const bool out_of_reach = !alone || (smaller.sites.front() != 0 && !first_sites_.contains(smaller.sites.front()));
      // Without the previous fault the count of the call changes, so the single fault is looked up by its place.
      if (smaller.faults.size() == 1 && smaller.sites[0] != 0) {
        const auto same = trials_of_way_.find(WayAt(smaller.faults[0], smaller.sites[0]));
        if (same != trials_of_way_.end()) one.tries.insert(one.tries.end(), same->second.begin(), same->second.end());
      }
      if (fresh && out_of_reach) {
        trial_of_faults_.erase(known);
        continue;
      }
      one.tries.push_back(known->second);
      if (fresh) plan_.push_back({std::move(smaller.faults), std::move(smaller.sites), true});
    }
    one.settled = one.tries.empty();
  }
}

void SweepEngine::TakeShrunk() {
  for (Shrinking& one : shrinking_) {
    if (one.settled || one.tries.empty()) continue;
    const TrialFindingText& finding = results_.at(one.trial).findings[one.finding];
    const auto shows = std::find_if(one.tries.begin(), one.tries.end(), [&](std::size_t index) {
      const auto tried = results_.find(index);
      return tried != results_.end() && FindSame(tried->second, finding) != nullptr;
    });
    one.settled = shows == one.tries.end() || !CanShrink(plan_[*shows].faults);
    if (shows != one.tries.end()) one.least = *shows;
    one.tries.clear();
  }
}

// Findings of several faults that fewer of them show, too, as far as those were tried. Nothing is run.
void SweepEngine::ShrinkByWhatIsKnown() {
  const std::size_t planned = plan_.size();
  if (!shrinks_) FindShrinkable();
  shrinks_ = true;
  for (;;) {
    TakeShrunk();
    const bool any = std::any_of(shrinking_.begin(), shrinking_.end(), [](const Shrinking& one) { return !one.settled; });
    if (!any) break;
    PlanShrinking();
  }
  plan_.erase(plan_.begin() + static_cast<std::ptrdiff_t>(planned), plan_.end());  // nobody runs these
}

}  // namespace cuaudit::harness
