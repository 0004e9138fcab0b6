// SPDX-License-Identifier: MIT
// The part of the engine about which trials a round gives to its runner: what is tried first when there may be no time for all, trials that
// another machine has planned, trials that others have finished, and fewer faults that show the same.
#include <set>
#include <string_view>

#include "harness/sweep/sweep_engine.h"
#include "harness/verdict/evidence/site_keys.h"

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

SweepEngine::PlaceKey SweepEngine::PlaceOf(const PlannedTrial& one) { return {one.sites.front(), CallInText(one.faults.front())}; }

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

// The rounds of a SweepEngine that look for the fewest faults of each finding.

namespace {

std::uint64_t HashFaults(const std::vector<std::string>& faults) {
  std::uint64_t hash = kHashSeed;
  for (const std::string& fault : faults) hash = HashText(fault, hash);
  return hash;
}

constexpr std::uint32_t kEveryLength = 16;  // longer bursts are halved

std::vector<std::string> ShorterFaults(const std::string& text) {
  faults::Fault fault;
  if (faults::ParseFault(text, &fault).expected != nullptr) return {};
  const bool burst = fault.how == faults::How::Burst && fault.burst > 1;
  if (!burst && fault.how != faults::How::Persist) return {};
  const std::uint32_t length = burst ? fault.burst : 2;
  fault.how = faults::How::Refuse;
  fault.burst = 1;
  std::vector<std::string> shorter = {TextOf(fault)};
  fault.how = faults::How::Burst;
  for (fault.burst = length > kEveryLength ? length / 2 : 2; fault.burst < length; ++fault.burst) {
    shorter.push_back(TextOf(fault));
    if (length > kEveryLength) break;
  }
  return shorter;
}

}  // namespace

bool CanShrink(const std::vector<std::string>& faults) {
  return faults.size() > 1 || std::any_of(faults.begin(), faults.end(), [](const std::string& one) { return !ShorterFaults(one).empty(); });
}

std::vector<PlannedTrial> SmallerLists(const PlannedTrial& list) {
  std::vector<PlannedTrial> smaller;
  const PlannedTrial fresh = {list.faults, list.sites, true};
  // The last fault is dropped first, because most often the earlier ones alone suffice.
  for (auto at = static_cast<std::ptrdiff_t>(list.faults.size()); list.faults.size() > 1 && at-- > 0;) {
    PlannedTrial& one = smaller.emplace_back(fresh);
    one.faults.erase(one.faults.begin() + at);
    one.sites.erase(one.sites.begin() + at);
  }
  for (std::size_t i = 0; i < list.faults.size(); ++i) {
    for (std::string& shorter : ShorterFaults(list.faults[i])) smaller.emplace_back(fresh).faults[i] = std::move(shorter);
  }
  return smaller;
}

// Makes one entry for all findings that a report would merge, once.
void SweepEngine::FindShrinkable() {
  if (std::exchange(shrinks_, true)) return;
  if (!first_found_.has_value()) return;
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

// Plans every list that is one step smaller and may show a finding: it is known already or becomes a trial of the next round. False: no
// finding may need fewer faults.
bool SweepEngine::PlanShrinking() {
  TakeShrunk();
  if (std::all_of(shrinking_.begin(), shrinking_.end(), [](const Shrinking& one) { return one.settled; })) return false;
  for (Shrinking& one : shrinking_) {
    if (one.settled) continue;
    one.tries.clear();
    for (PlannedTrial& smaller : SmallerLists(plan_[one.least])) {
      const auto [known, fresh] = trial_of_faults_.emplace(HashFaults(smaller.faults), plan_.size());
      // A fault counted from a previous fault cannot come first. A place that only unwinding reaches cannot be reached without a previous
      // fault.
      const std::optional<faults::Fault> front = ParsedFault(smaller.faults.front());
      const bool out_of_reach = (front && front->follows) || (smaller.sites.front() != 0 && !first_sites_.contains(smaller.sites.front()));
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
      if (fresh) plan_.push_back(std::move(smaller));
    }
    one.settled = one.tries.empty();
  }
  return true;
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
  FindShrinkable();
  while (PlanShrinking()) continue;
  plan_.erase(plan_.begin() + static_cast<std::ptrdiff_t>(planned), plan_.end());  // nobody runs these
}

namespace {

struct HostRow {
  Asked asked;
  driver::BaseId base;
  Reason none;
  Reason foreign;
};
constexpr HostRow kHostRows[] = {
    {Asked::Memory, faults::kHostAllocation, Reason::OomNone, Reason::OomForeign},
    {Asked::Thread, faults::kHostThread, Reason::ThreadNone, Reason::ThreadForeign},
};

// One allocation or thread that can be refused.
struct Turn {
  std::uint32_t occurrence = 0;
  std::uint64_t site = 0;  // 0: unknown call stack
};

std::vector<Turn> TurnsOf(const HostRow& row, const Rehearsal& rehearsal) {
  std::vector<Turn> own;
  if (const std::optional<Rehearsal::HostTurns>& counted = rehearsal.host_turns) {
    own.resize(row.asked == Asked::Memory ? counted->allocations : counted->threads);
    for (std::size_t i = 0; i < own.size(); ++i) own[i].occurrence = static_cast<std::uint32_t>(i + 1);
    return own;
  }
  const Evidence run = rehearsal.run.evidence();
  for (const std::uint32_t index : run.facts().asked[static_cast<std::size_t>(row.asked)]) {
    const faults::Record& record = run.record(index);
    own.push_back({record.occurrence, record.stack == 0 ? 0 : SiteKey(*run.journal, SiteOf(record))});
  }
  std::sort(own.begin(), own.end(), [](const Turn& a, const Turn& b) { return a.occurrence < b.occurrence; });
  return own;
}

void Append(const HostRow& row, const Rehearsal& rehearsal, const PlanOptions& options, PlannedFaults* plan) {
  const std::vector<Turn> own = TurnsOf(row, rehearsal);
  const std::uint64_t foreign = rehearsal.run.ledger.facts.foreign[static_cast<std::size_t>(row.asked)];
  if (own.empty()) {
    plan->skipped[row.none] = 1;
    return;
  }
  if (foreign != 0) plan->skipped[row.foreign] += foreign;
  for (const Turn& turn : own) {
    ++plan->possible;
    faults::Fault fault = {.base = row.base, .occurrence = turn.occurrence, .how = faults::HostFaultOf(row.base)->how};
    PlannedWay& way = plan->ways.emplace_back();
    way.way = {TextOf(fault), turn.site};
    if (options.limit != 0 && plan->faults.size() >= options.limit) {
      way.why_not = Reason::BeyondLimit;
      ++plan->skipped[Reason::BeyondLimit];
      continue;
    }
    way.trial = plan->faults.size();
    plan->faults.push_back(way.way.fault);
    plan->sites.push_back(turn.site);
  }
}

}  // namespace

void AppendHostFaults(const Rehearsal& rehearsal, const PlanOptions& options, PlannedFaults* plan) {
  for (const HostRow& row : kHostRows) {
    const std::string_view option = faults::HostFaultOf(row.base)->option;
    if (std::find(options.hows.begin(), options.hows.end(), option) != options.hows.end()) Append(row, rehearsal, options, plan);
  }
}

}  // namespace cuaudit::harness
