// SPDX-License-Identifier: MIT
// The rounds of a SweepEngine that fail a second call while the program unwinds from the first: which of them, and what stands for the
// rest.
#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/sweep/findings/shrink.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/plan/spread.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {
namespace {

WayToFail WayOf(const NextFault& next) { return {next.fault, next.site, next.phase, next.on_the_way_back}; }

}  // namespace

// Drops next faults that an earlier trial of the plan stands for. They are dropped at once, because a loop has many ways back and few new
// ones.
// The trial that comes first in the plan stands for the others.
void SweepEngine::Claim(std::size_t index, Unwinding* unwinding) {
  if (options_.plan.prune == Prune::None) return;
  std::erase_if(unwinding->faults, [&](const NextFault& next) {
    if (!IsChosen(options_.plan, next.fault)) return false;
    const auto [claim, fresh] = claims_.try_emplace(WayAt(next.fault, next.state), index);
    if (fresh || claim->second >= index) {
      claim->second = index;
      return false;
    }
    ++unwinding->pruned[Reason::SecondSameState];
    return true;
  });
}

// Counts what can follow the trials of this round and is neither left out nor stood for by an equal state, in the order of the plan.
std::vector<SweepEngine::Second> SweepEngine::SecondFaults() {
  std::vector<Second> seconds;
  std::unordered_set<std::uint64_t> known;
  for (std::size_t index = 0; index < plan_.size(); ++index) {
    if (plan_[index].faults.size() != static_cast<std::size_t>(round_)) continue;
    Unwinding unwinding = std::move(results_.at(index).unwinding);
    results_.at(index).unwinding = Unwinding();
    for (const auto& [reason, count] : unwinding.pruned) {
      pruned_[reason] += count;
      possible_ += count;
    }
    for (const LeftOut& one : unwinding.left_out) {
      coverage_.LeaveOut(WayOf(one.fault), one.why);
      ++skipped_[one.why];
    }
    for (NextFault& next : unwinding.faults) {
      if (!IsChosen(options_.plan, next.fault)) {
        coverage_.LeaveOut(WayOf(next), Reason::SecondNotChosen);
        ++skipped_[Reason::SecondNotChosen];
        continue;
      }
      ++possible_;
      if (options_.plan.prune != Prune::None && !known.insert(WayAt(next.fault, next.state)).second) {
        ++pruned_[Reason::SecondSameState];
      } else {
        seconds.push_back({index, unwinding.shape, std::move(next)});
      }
    }
  }
  return seconds;
}

// Plans the next round. Each way to fail at each step of a shape is tried once; of what that stands for, some is tried all the same.
void SweepEngine::PlanUnwinding() {
  claims_.clear();
  shapes_.clear();
  std::vector<Second> seconds = SecondFaults();
  ++round_;
  std::unordered_set<std::uint64_t> known;
  std::vector<StoodFor> stood_for;
  std::vector<bool> first(seconds.size());
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const Second& one = seconds[i];
    first[i] = one.shape == 0 || known.insert(WayAt(one.fault.fault, HashNumber(one.fault.step, one.shape))).second;
    if (!first[i]) stood_for.push_back({one.shape, one.after});
  }
  const std::vector<bool> spread = Spread(stood_for, SpreadBudget(stood_for.size(), options_.plan.spread_at_least));
  auto tried = spread.begin();
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    Second& one = seconds[i];
    const bool sample = !first[i] && *tried;
    if (!first[i]) ++tried;
    if (one.shape == 0) {
      PlanSecond(std::move(one));
    } else if (first[i] || sample) {
      Shape& shape = shapes_[one.shape];
      (first[i] ? shape.tried : shape.samples).push_back(plan_.size());
      const std::size_t before = plan_.size();
      PlanSecond(std::move(one));
      if (plan_.size() == before) (first[i] ? shape.tried : shape.samples).pop_back();
    } else {
      ++pruned_[Reason::SecondSameUnwinding];
      shapes_[one.shape].stood_for.push_back(std::move(one));
    }
  }
}

void SweepEngine::PlanSecond(Second one) {
  const WayToFail way = WayOf(one.fault);
  if (options_.plan.limit != 0 && plan_.size() >= options_.plan.limit) {
    coverage_.LeaveOut(way, Reason::BeyondLimit);
    ++skipped_[Reason::BeyondLimit];
    return;
  }
  coverage_.Plan(way, plan_.size());
  PlannedTrial trial = plan_[one.after];
  trial.faults.push_back(std::move(one.fault.fault));
  trial.sites.push_back(one.fault.site);
  trial.after = one.after;
  plan_.push_back(std::move(trial));
}

// True when a sample finds what neither its first faults alone nor any trial that stands for it finds.
bool SweepEngine::HidesSomething(const Shape& shape) const {
  return std::any_of(shape.samples.begin(), shape.samples.end(), [&](std::size_t sample) {
    const TrialResult& seen = results_.at(sample);
    return std::any_of(seen.findings.begin(), seen.findings.end(), [&](const TrialFindingText& finding) {
      const auto finds_it = [&](std::size_t trial) { return FindSame(results_.at(trial), finding) != nullptr; };
      return !finds_it(plan_[sample].after) && std::none_of(shape.tried.begin(), shape.tried.end(), finds_it);
    });
  });
}

// Plans all second faults of the shapes of which a sample found something of its own: their unwindings are not equal.
void SweepEngine::PlanUnlikeShapes() {
  std::vector<Second> unlike;
  for (auto& [number, shape] : shapes_) {
    if (shape.stood_for.empty() || !HidesSomething(shape)) continue;
    std::move(shape.stood_for.begin(), shape.stood_for.end(), std::back_inserter(unlike));
  }
  shapes_.clear();
  std::stable_sort(unlike.begin(), unlike.end(), [](const Second& a, const Second& b) { return a.after < b.after; });
  for (Second& one : unlike) {
    --pruned_[Reason::SecondSameUnwinding];
    PlanSecond(std::move(one));
  }
  if (pruned_.contains(Reason::SecondSameUnwinding) && pruned_.at(Reason::SecondSameUnwinding) == 0) {
    pruned_.erase(Reason::SecondSameUnwinding);
  }
}

}  // namespace cuaudit::harness
