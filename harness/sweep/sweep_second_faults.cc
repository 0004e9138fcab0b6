// SPDX-License-Identifier: MIT
// The rounds of a SweepEngine that fail a second call while the program unwinds from the first: which of them, and what stands for the
// rest.
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {
namespace {

WayToFail WayOf(const NextFault& next) { return {TextOf(next.fault), next.site, next.phase, next.on_the_way_back}; }

}  // namespace

// True when an earlier trial of the plan stands for this one. Otherwise this one stands for later ones.
bool SweepEngine::IsClaimed(std::size_t index, const NextFault& next) {
  if (options_.plan.prune == Pruning::None || !IsChosen(options_.plan, next.fault.base)) return false;
  std::size_t& claim = claims_.try_emplace(WayAt(next.fault, next.state), index).first->second;
  if (claim < index) return true;
  claim = index;
  return false;
}

// Drops next faults of a logged trial that an earlier trial of the plan stands for.
void SweepEngine::Claim(std::size_t index, Unwinding* unwinding) {
  const std::size_t dropped = std::erase_if(unwinding->faults, [&](const NextFault& next) { return IsClaimed(index, next); });
  if (dropped != 0) unwinding->pruned[Reason::SecondSameState] += dropped;
}

// Counts what can follow the trials of this round and is neither left out nor stood for by an equal state, in the order of the plan.
std::vector<SweepEngine::Second> SweepEngine::SecondFaults() {
  std::vector<Second> seconds;
  std::unordered_set<std::uint64_t> known;
  for (std::size_t index = 0; index < plan_.size(); ++index) {
    if (plan_[index].faults.size() != static_cast<std::size_t>(round_) || !results_.contains(index)) continue;
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
    for (const NextFault& next : unwinding.faults) {
      if (!IsChosen(options_.plan, next.fault.base)) {
        coverage_.LeaveOut(WayOf(next), Reason::SecondNotChosen);
        ++skipped_[Reason::SecondNotChosen];
        continue;
      }
      ++possible_;
      if (options_.plan.prune != Pruning::None && !known.insert(WayAt(next.fault, next.state)).second) {
        ++pruned_[Reason::SecondSameState];
      } else {
        seconds.push_back({index, unwinding.shape, 0, next});
      }
    }
  }
  return seconds;
}

// Plans the next round. Each way to fail at each step of a shape is tried once; of what that stands for, some is tried all the same.
void SweepEngine::PlanUnwinding() {
  claims_.clear();
  std::vector<Second> seconds = SecondFaults();
  ++round_;
  std::unordered_set<std::uint64_t> known;
  std::vector<StoodFor> stood_for;
  std::vector<bool> first(seconds.size());
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    Second& one = seconds[i];
    if (one.shape != 0) one.way = WayAt(one.fault.fault, HashNumber(one.fault.step, one.shape));
    first[i] = one.shape == 0 || known.insert(one.way).second;
    if (!first[i]) stood_for.push_back({one.shape, one.after});
  }
  const std::vector<bool> spread = Spread(stood_for, SpreadBudget(stood_for.size(), options_.plan.spread_at_least));
  auto sampled = spread.begin();
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const Second& one = seconds[i];
    if (one.shape == 0) {
      (void)PlanSecond(one);
      continue;
    }
    Shape& shape = shapes_[one.shape];
    if (!first[i] && !*sampled++) {
      shape.stood_for.push_back(one);
    } else if (PlanSecond(one)) {
      (first[i] ? shape.tried : shape.samples).push_back({one.way, plan_.size() - 1});
    }
  }
}

// Returns false when the fault is beyond --limit, and counts it as not tried.
bool SweepEngine::PlanSecond(const Second& one) {
  WayToFail way = WayOf(one.fault);
  if (LimitReached()) {
    coverage_.LeaveOut(way, Reason::BeyondLimit);
    ++skipped_[Reason::BeyondLimit];
    return false;
  }
  coverage_.Plan(way, plan_.size());
  PlannedTrial trial = plan_[one.after];
  trial.faults.push_back(std::move(way.fault));
  trial.sites.push_back(one.fault.site);
  trial.after = one.after;
  plan_.push_back(std::move(trial));
  return true;
}

// Plans as many as --limit has room for, in the order of the plan. Returns whether there was any.
bool SweepEngine::PlanSeconds(std::vector<Second> seconds) {
  const std::size_t from = plan_.size();
  std::stable_sort(seconds.begin(), seconds.end(), [](const Second& a, const Second& b) { return a.after < b.after; });
  for (const Second& one : seconds) {
    Shape& shape = shapes_[one.shape];
    const TriedWay tried = {one.way, plan_.size()};
    if (PlanSecond(one)) shape.tried.push_back(tried);
  }
  return plan_.size() != from;
}

// Plans what is left to try of equal unwindings: first more faults of each way of which none has fired; then all faults of a shape whose
// unwindings have turned out to differ. When nothing is left, the rest is counted as stood for.
void SweepEngine::SettleShapes() {
  std::vector<Second> stand_ins;
  for (auto& [number, shape] : shapes_) TakeStandIns(&shape, &stand_ins);
  if (PlanSeconds(std::move(stand_ins))) return;
  std::vector<Second> unlike;
  for (auto& [number, shape] : shapes_) {
    if (shape.stood_for.empty()) continue;
    if (HidesSomething(shape)) {
      unlike.insert(unlike.end(), shape.stood_for.begin(), shape.stood_for.end());
    } else {
      pruned_[Reason::SecondSameUnwinding] += shape.stood_for.size();
    }
  }
  (void)PlanSeconds(std::move(unlike));
  shapes_.clear();
}

// Takes from `shape` second faults of each way of which none has fired: as many as were tried in vain, so that there are few rounds. Beyond
// --limit it takes all.
void SweepEngine::TakeStandIns(Shape* shape, std::vector<Second>* stand_ins) const {
  std::unordered_set<std::uint64_t> stood;
  std::unordered_map<std::uint64_t, std::size_t> room;
  for (const TriedWay& one : shape->tried) {
    if (Fired(one)) stood.insert(one.way);
    ++room[one.way];
  }
  std::erase_if(shape->samples, [&](const TriedWay& one) {
    if (!Fired(one) || !stood.insert(one.way).second) return false;
    shape->tried.push_back(one);
    return true;
  });
  std::erase_if(shape->stood_for, [&](const Second& one) {
    if (stood.contains(one.way)) return false;
    std::size_t& left = room.try_emplace(one.way, 1).first->second;
    if (left == 0 && !LimitReached()) return false;
    if (left != 0) --left;
    stand_ins->push_back(one);
    return true;
  });
}

void SweepEngine::EndHere(Reason why) {
  if (finished_) return;
  finished_ = true;
  ended_here_ = why;
  const auto left_out = [this, why](const Second& one) {
    coverage_.LeaveOut(WayOf(one.fault), why);
    ++skipped_[why];
  };
  for (std::size_t index = 0; index < plan_.size(); ++index) {
    if (!results_.contains(index) && !plan_[index].shrinks) ++skipped_[why];
  }
  // Whether an equal fault stands for these is not settled.
  for (const auto& [number, shape] : shapes_) std::for_each(shape.stood_for.begin(), shape.stood_for.end(), left_out);
  if (round_ < options_.depth) {
    const std::vector<Second> seconds = SecondFaults();
    std::for_each(seconds.begin(), seconds.end(), left_out);
  }
  if (options_.shrink) ShrinkByWhatIsKnown();
}

// True when a sample finds something that neither its first faults alone nor any trial that stands for it finds.
bool SweepEngine::HidesSomething(const Shape& shape) const {
  return std::any_of(shape.samples.begin(), shape.samples.end(), [&](const TriedWay& sample) {
    const TrialResult& seen = results_.at(sample.trial);
    return std::any_of(seen.findings.begin(), seen.findings.end(), [&](const TrialFindingText& finding) {
      const auto finds_it = [&](std::size_t trial) { return FindSame(results_.at(trial), finding) != nullptr; };
      const auto stands = [&](const TriedWay& one) { return Fired(one) && finds_it(one.trial); };
      return !finds_it(plan_[sample.trial].after) && std::none_of(shape.tried.begin(), shape.tried.end(), stands);
    });
  });
}

}  // namespace cuaudit::harness
