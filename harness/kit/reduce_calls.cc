// SPDX-License-Identifier: MIT
#include "harness/kit/reduce_calls.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "faults/driver/effects.h"
#include "reports/words/words.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kMostTriples = 4000;
constexpr std::size_t kMostCyclesTried = 256;  // that are tried, each alone and each after the first
constexpr std::size_t kMostPaired = 80;        // calls of which each pair is tried

// Marks the calls of a list that are kept, in one order: of each stage first its steps, then its rest.
using Kept = std::vector<bool>;

template <typename List, typename Visit>
void EachStep(List& list, const Visit& visit) {
  std::size_t number = 0;
  for (auto& stage : list.stages) {
    for (auto& step : stage.steps) visit(number++, step, false);
    for (auto& step : stage.rest) visit(number++, step, true);
  }
}

void AddVariables(const Step& step, bool outputs, std::set<int>* variables) {
  for (const CallValue& value : step.values) {
    if (value.variable != kNoVariable && (value.is == CallValue::Is::Output) == outputs) variables->insert(value.variable);
  }
}

class Reducer {
 public:
  Reducer(CallList list, const std::vector<Wrong>& wanted, DefectJudge* judge) : list_(std::move(list)), wanted_(wanted), judge_(judge) {
    EachStep(list_, [&](std::size_t, const Step& step, bool) { steps_.push_back(&step); });
    kept_.assign(steps_.size(), true);
    for (const Stage& stage : list_.stages) {
      for (const Step& step : stage.steps) AddVariables(step, true, &written_);
      for (const Step& step : stage.rest) AddVariables(step, true, &written_);
      if (stage.failing) AddVariables(stage.failing->step, true, &written_);
    }
  }

  // Looks at the whole list; where it does not show the defect, at the list without calls that the replay makes differently; each time also
  // without what other defects lose.
  Status Begin() {
    judge_->CallFrom(false);
    const Status first = LookForWanted();
    if (first.ok() || !list_.has_faults()) return first;
    // A program may keep objects of one place whether or not a call failed before.
    judge_->CallFrom(true);
    kept_.assign(steps_.size(), true);
    return LookForWanted().ok() ? Status() : first;
  }

  Status LookForWanted() {
    const Result<DefectShown> whole = judge_->Look(list_);
    if (!whole.ok()) return whole.status();
    using Drop = void (Reducer::*)(const DefectShown&);
    Result<DefectShown> shown = whole;
    for (const Drop drop : {Drop(nullptr), &Reducer::DropFailed, &Reducer::DropUnlike, &Reducer::DropContextsOfThreads}) {
      if (drop != nullptr) {
        (this->*drop)(*whole);
        shown = judge_->Look(Build(kept_));
        if (!shown.ok()) return shown.status();
      }
      if (HasWanted(*shown)) break;
      const Kept all = kept_;
      if (!DropOtherPlaces()) continue;
      Result<DefectShown> chosen = judge_->Look(Build(kept_));
      if (!chosen.ok()) return chosen.status();
      if (HasWanted(*chosen)) {
        shown = std::move(chosen);
        break;
      }
      kept_ = all;
    }
    if (!HasWanted(*shown)) {
      return {Exit::Environment, "the recorded calls, made again one after the other, show " + InWords(*shown) + WhatIsMissing(*whole)};
    }
    first_ = std::move(*shown);
    most_unlike_ = first_.unlike.size();
    return {};
  }

  Status Reduce() {
    DropClasses();
    for (std::size_t before = 0; before != Count();) {
      before = Count();
      DropGroups();
      Minimize();
      DropTriples();
    }
    return failed_;
  }

  CallList Take() const { return Build(kept_); }

  // The calls outside of cycles and those of these cycles, without those that use what another cycle makes.
  CallList OfCycles(const std::set<std::uint32_t>& cycles) const {
    Kept kept(steps_.size());
    for (std::size_t i = 0; i < steps_.size(); ++i) kept[i] = steps_[i]->cycle == 0 || cycles.contains(steps_[i]->cycle);
    (void)Close(&kept);
    return Build(kept);
  }

  std::vector<std::string> Unlike() const {
    std::vector<std::string> calls;
    const CallList list = Build(kept_);
    const Result<DefectShown> shown = judge_->Look(list);
    if (!shown.ok()) return calls;
    for (const Step* const step : shown->unlike) calls.emplace_back(driver::Name(driver::BaseOf(step->call)));
    return calls;
  }

 private:
  std::size_t Count() const { return static_cast<std::size_t>(std::count(kept_.begin(), kept_.end(), true)); }

  bool HasWanted(const DefectShown& shown) const {
    return std::all_of(wanted_.begin(), wanted_.end(),
                       [&](const Wrong& one) { return std::find(shown.wrong.begin(), shown.wrong.end(), one) != shown.wrong.end(); });
  }

  // Whether what else is wrong was wrong before.
  bool IsTidy(const DefectShown& shown) const {
    for (const Wrong& one : shown.wrong) {
      const auto same = [&](const Wrong& other) { return one.rule == other.rule && one.kind == other.kind && one.count <= other.count; };
      if (std::none_of(first_.wrong.begin(), first_.wrong.end(), same)) return false;
    }
    for (std::size_t i = 0; i < shown.left.size(); ++i) {
      if (shown.left[i] > first_.left[i]) return false;
    }
    return shown.unlike.size() <= most_unlike_;
  }

  static std::string InWords(const DefectShown& shown) {
    std::string text;
    for (const Wrong& one : shown.wrong) {
      text += (text.empty() ? "" : ", ") + std::string(words::Row(one.rule).name) + " " + std::string(driver::Name(one.kind)) + " " +
              std::to_string(one.count);
    }
    return text.empty() ? "nothing wrong" : text;
  }

  CallList Build(const Kept& kept) const {
    CallList list;
    list.variables = list_.variables;
    std::size_t number = 0;
    for (const Stage& stage : list_.stages) {
      Stage less;
      for (const Step& step : stage.steps) {
        if (kept[number++]) less.steps.push_back(step);
      }
      less.failing = stage.failing;
      for (const Step& step : stage.rest) {
        if (kept[number++]) less.rest.push_back(step);
      }
      list.stages.push_back(std::move(less));
    }
    return list;
  }

  // Leaves out what uses a variable that nobody writes any more. Answers false when a failing call does.
  bool Close(Kept* kept) const {
    for (bool changed = true; changed;) {
      changed = false;
      std::set<int> made;
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        if ((*kept)[i]) AddVariables(*steps_[i], true, &made);
      }
      for (const Stage& stage : list_.stages) {
        if (stage.failing) AddVariables(stage.failing->step, true, &made);
      }
      const auto lacks = [&](const Step& step) {
        std::set<int> used;
        AddVariables(step, false, &used);
        return std::any_of(used.begin(), used.end(), [&](int one) { return written_.count(one) != 0 && made.count(one) == 0; });
      };
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        if (!(*kept)[i] || !lacks(*steps_[i])) continue;
        (*kept)[i] = false;
        changed = true;
      }
      const auto fails = [&](const Stage& stage) { return stage.failing && lacks(stage.failing->step); };
      if (std::any_of(list_.stages.begin(), list_.stages.end(), fails)) return false;
    }
    return true;
  }

  // Takes the list without these calls when it shows the same.
  bool Without(const std::vector<std::size_t>& dropped) {
    if (dropped.empty() || !failed_.ok()) return false;
    Kept less = kept_;
    for (const std::size_t one : dropped) less[one] = false;
    if (less == kept_ || !Close(&less)) return false;
    const CallList list = Build(less);
    const Result<DefectShown> shown = judge_->Look(list);
    if (!shown.ok()) failed_ = shown.status();
    if (!shown.ok() || !HasWanted(*shown) || !IsTidy(*shown)) return false;
    most_unlike_ = shown->unlike.size();
    kept_ = std::move(less);
    return true;
  }

  // What a list that does not show the defect lacks.
  static std::string WhatIsMissing(const DefectShown& shown) {
    if (!shown.why_nothing.empty()) return ": " + shown.why_nothing;
    std::map<std::string_view, std::size_t> failed;
    for (const Step* const step : shown.unlike) ++failed[driver::Name(driver::BaseOf(step->call))];
    std::string text;
    for (const auto& [name, count] : failed) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(name);
    return text.empty() ? text : "; calls that succeeded in the program and fail here: " + text;
  }

  // Another defect may lose objects of the same kind, which it acquires at another place. False when nothing tells the places apart, or
  // when the call that fails needs such an object.
  bool DropOtherPlaces() {
    std::set<driver::Kind> kinds;
    for (const Step* const step : steps_) {
      if (step->of_defect) kinds.insert(driver::EffectOf(driver::BaseOf(step->call)).kind);
    }
    const std::vector<std::size_t> others = Where([&](const Step& step) {
      const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(step.call));
      return driver::IsAcquire(row.effect) && !step.of_defect && kinds.count(row.kind) != 0;
    });
    Kept less = kept_;
    for (const std::size_t one : others) less[one] = false;
    if (others.empty() || !Close(&less)) return false;
    kept_ = std::move(less);
    return true;
  }

  // What failed in the program did nothing there, and may succeed here: cuDevicePrimaryCtxRelease when the driver was shut down already.
  void DropFailed(const DefectShown&) {
    kept_.assign(steps_.size(), true);
    for (std::size_t i = 0; i < steps_.size(); ++i) kept_[i] = steps_[i]->succeeded;
    (void)Close(&kept_);
  }

  void DropUnlike(const DefectShown& shown) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (std::find(shown.unlike.begin(), shown.unlike.end(), steps_[i]) != shown.unlike.end()) kept_[i] = false;
    }
    (void)Close(&kept_);
  }

  // The current context is a thread's own, and one thread makes all calls: only the thread whose call fails may choose it.
  void DropContextsOfThreads(const DefectShown& shown) {
    if (!list_.has_faults()) return;
    DropFailed(shown);
    const std::uint32_t chooses = list_.stages.front().failing->step.thread;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const driver::Effect effect = driver::EffectOf(driver::BaseOf(steps_[i]->call)).effect;
      const bool chosen =
          effect == driver::Effect::SetsContext || effect == driver::Effect::PushesContext || effect == driver::Effect::PopsContext;
      if (chosen && steps_[i]->thread != chooses) kept_[i] = false;
    }
  }

  std::vector<std::size_t> Where(const std::function<bool(const Step&)>& matches) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (kept_[i] && matches(*steps_[i])) found.push_back(i);
    }
    return found;
  }

  // First what most calls of a program are: questions, work, and what failed anyway.
  void DropClasses() {
    const auto effect = [](const Step& step) { return driver::EffectOf(driver::BaseOf(step.call)).effect; };
    Without(Where([&](const Step& step) { return effect(step) == driver::Effect::Queries || effect(step) == driver::Effect::Describes; }));
    Without(Where([](const Step& step) { return !step.succeeded; }));
    Without(Where([&](const Step& step) { return effect(step) == driver::Effect::Uses && step.call != driver::CallId::Init; }));
  }

  // By thread, by cycle, and by object: whatever makes it, uses it and releases it.
  void DropGroups() {
    std::set<std::uint32_t> threads;
    std::set<std::uint32_t> cycles;
    for (const Step* const step : steps_) {
      threads.insert(step->thread);
      cycles.insert(step->cycle);
    }
    if (threads.size() > 1) {
      for (const std::uint32_t one : threads) Without(Where([&](const Step& step) { return step.thread == one; }));
    }
    if (cycles.size() > 1) {
      for (const std::uint32_t one : cycles) Without(Where([&](const Step& step) { return step.cycle == one; }));
    }
    for (int variable = static_cast<int>(list_.variables.size()) - 1; variable >= 0; --variable) {
      Without(Where([&](const Step& step) {
        return std::any_of(step.values.begin(), step.values.end(), [&](const CallValue& value) { return value.variable == variable; });
      }));
    }
  }

  // ddmin: ever smaller parts of what is left.
  void Minimize() {
    for (std::size_t part = std::max<std::size_t>(1, Count() / 2);; part = std::max<std::size_t>(1, part / 2)) {
      std::vector<std::size_t> left = Where([](const Step&) { return true; });
      for (std::size_t end = left.size(); end > 0;) {
        const std::size_t begin = end > part ? end - part : 0;
        const std::vector<std::size_t> chunk(left.begin() + static_cast<std::ptrdiff_t>(begin),
                                             left.begin() + static_cast<std::ptrdiff_t>(end));
        end = begin;
        Without(chunk);
      }
      if (part == 1) return;
    }
  }

  // A pair of calls that belong together, such as a push and its pop, may have its second call twice: on the way back and in the rest.
  void DropTriples() {
    const std::vector<std::size_t> left = Where([](const Step&) { return true; });
    if (left.size() > kMostPaired) return;
    const auto row = [&](std::size_t one) { return driver::EffectOf(driver::BaseOf(steps_[one]->call)); };
    std::size_t tries = 0;
    for (const std::size_t first : left) {
      if (!driver::IsAcquire(row(first).effect) && row(first).effect != driver::Effect::PushesContext) continue;
      std::vector<std::size_t> ends;
      for (const std::size_t one : left) {
        if (one > first && driver::IsRelease(row(one).effect) && IsOf(row(first), row(one))) ends.push_back(one);
      }
      for (std::size_t a = 0; a < ends.size() && kept_[first]; ++a) {
        for (std::size_t b = a; b < ends.size() && kept_[first]; ++b) {
          if (++tries > kMostTriples) return;
          if (kept_[ends[a]] && kept_[ends[b]]) Without({first, ends[a], ends[b]});
        }
      }
    }
  }

  static bool IsOf(const driver::EffectRow& acquire, const driver::EffectRow& release) {
    return acquire.kind == release.kind || acquire.effect == driver::Effect::CreatesContext;
  }

  const CallList list_;
  const std::vector<Wrong>& wanted_;
  DefectJudge* const judge_;
  std::vector<const Step*> steps_;
  std::set<int> written_;  // variables that some call writes
  Kept kept_;
  DefectShown first_;
  std::size_t most_unlike_ = 0;
  Status failed_;
};

}  // namespace

Result<Reduction> ReduceCalls(CallList list, const std::vector<Wrong>& wanted, DefectJudge* judge) {
  Reduction reduction;
  reduction.before = CountCalls(list);
  Reducer reducer(std::move(list), wanted, judge);
  Status status = reducer.Begin();
  if (status.ok()) status = reducer.Reduce();
  if (!status.ok()) return status;
  reduction.list = reducer.Take();
  reduction.unlike = reducer.Unlike();
  reduction.looks = judge->looks();
  return reduction;
}

Result<Reduction> ReduceToOneCycle(const CallList& list, const std::vector<Wrong>& wanted, DefectJudge* judge) {
  std::set<std::uint32_t> cycles;
  EachStep(list, [&](std::size_t, const Step& step, bool) { cycles.insert(step.cycle); });
  cycles.erase(0);
  if (cycles.empty()) return ReduceCalls(list, wanted, judge);
  if (cycles.size() > kMostCyclesTried) cycles.erase(std::next(cycles.begin(), kMostCyclesTried), cycles.end());
  const Reducer whole(list, wanted, judge);
  Status first;  // what the first cycle shows instead
  for (const bool after_first : {false, true}) {
    for (const std::uint32_t cycle : cycles) {
      if (after_first && cycle == *cycles.begin()) continue;
      std::set<std::uint32_t> tried = {cycle};
      if (after_first) tried.insert(*cycles.begin());
      Result<Reduction> reduction = ReduceCalls(whole.OfCycles(tried), wanted, judge);
      if (reduction.ok()) {
        reduction->before = CountCalls(list);
        return reduction;
      }
      if (first.ok()) first = reduction.status();
    }
  }
  return first;
}

}  // namespace cuaudit::harness
