// SPDX-License-Identifier: MIT
// The part of the engine about which trials a round gives to its runner: what is tried first when there may be no time for all, trials that
// another machine has planned, and trials that others have finished.
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "harness/sweep/host_plan.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {

Status SweepEngine::GiveRound(std::size_t from) {
  std::vector<TrialOrder> orders;
  for (std::size_t index = from; index < plan_.size(); ++index) {
    if (!results_.contains(index)) orders.push_back(OrderOf(index));
  }
  waiting_.clear();
  if (!options_.places_first || shrinks_ || orders.empty()) return runner_->Give(std::move(orders));
  std::set<std::uint64_t> places;
  for (const auto& [index, trial] : results_) places.insert(plan_[index].sites.front());
  for (TrialOrder& one : orders) {
    const PlannedTrial& planned = plan_[one.index];
    const bool later = round_ == 1 && !places.insert(planned.sites.front()).second;
    waiting_[TurnOf(NoveltyOf(planned), later)].push_back(std::move(one));
  }
  return GiveTurn();
}

Status SweepEngine::GiveTurn() {
  auto next = waiting_.extract(waiting_.begin());
  turn_ = next.key();
  return runner_->Give(std::move(next.mapped()));
}

SweepEngine::PlaceKey SweepEngine::PlaceOf(const PlannedTrial& one) {
  const std::string& fault = one.faults.front();
  return {one.sites.front(), fault.substr(0, fault.find_first_of("@#"))};
}

// The plan holds first faults alone when this is called.
void SweepEngine::CompareWithBefore() {
  if (!options_.before.has_value()) return;
  std::set<PlaceKey> keys;
  for (const PlannedTrial& one : plan_) keys.insert(PlaceOf(one));
  std::vector<report::Acquired> places;
  places.reserve(keys.size());
  for (const auto& [site, call] : keys) places.push_back({call, SiteInWords(site).stack});
  const std::vector<Novelty> novelties = options_.before->Compare(places);
  std::size_t at = 0;
  for (const PlaceKey& key : keys) novelties_[key] = novelties[at++];
}

Novelty SweepEngine::NoveltyOf(const PlannedTrial& one) const {
  const auto found = novelties_.find(PlaceOf(one));
  return found == novelties_.end() ? Novelty::New : found->second;
}

std::size_t SweepEngine::NewPlacesUntried() const {
  std::set<PlaceKey> untried;
  for (const auto& [key, novelty] : novelties_) {
    if (novelty != Novelty::Known) untried.insert(key);
  }
  for (const auto& [index, trial] : results_) untried.erase(PlaceOf(plan_[index]));
  return untried.size();
}

bool SweepEngine::PlacesTried() const {
  std::set<std::uint64_t> places;
  for (const auto& [index, trial] : results_) places.insert(plan_[index].sites.front());
  for (std::size_t index = 0; index < plan_.size(); ++index) {
    const PlannedTrial& one = plan_[index];
    const bool known = one.sites.front() != 0 && places.contains(one.sites.front());
    if (one.faults.size() == 1 && !one.shrinks && !known && !results_.contains(index)) return false;
  }
  return true;
}

Result<std::uint64_t> SweepEngine::ListFirstFaults(Rehearsal rehearsal, const FaultSink& sink) {
  Status usable = CheckPlanOptions(options_.plan);
  if (!usable.ok()) return usable;
  TakeRehearsal(std::move(rehearsal));
  std::uint64_t count = ListFaults(CallsToPlan(), options_.plan, by_site_, sink);
  PlanOptions rest = options_.plan;
  if (rest.limit != 0 && count >= rest.limit) return count;
  if (rest.limit != 0) rest.limit -= count;
  PlannedFaults of_host;
  AppendHostFaults(*rehearsal_, rest, &of_host);
  for (std::size_t i = 0; i < of_host.faults.size(); ++i, ++count) sink(of_host.faults[i], of_host.sites[i]);
  return count;
}

Status SweepEngine::PrepareShard(Rehearsal rehearsal, std::vector<PlannedTrial> trials, int round) {
  Status usable = CheckPlanOptions(options_.plan);
  if (!usable.ok()) return usable;
  TakeRehearsal(std::move(rehearsal));
  (void)TakeFirstFaults();  // second faults are compared with them
  shard_ = true;
  round_ = round;
  plan_ = std::move(trials);
  Result<TrialLog> log = TrialLog::Open(dir_->File("trials.jsonl"));
  if (!log.ok()) return log.status();
  log_ = std::move(*log);
  return BeginRounds();
}

void SweepEngine::Know(std::vector<TrialResult> finished, bool whole) {
  known_ = std::move(finished);
  known_whole_ = whole;
}

}  // namespace cuaudit::harness
