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
#include "harness/kit/call_list.h"
#include "harness/kit/setting_calls.h"
#include "reports/words/words.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kMostTriples = 4000;
constexpr std::size_t kMostCyclesTried = 256;  // that are tried, each alone and each after the first
constexpr std::size_t kMostPaired = 80;        // calls of which each pair is tried

class Reducer {
 public:
  Reducer(CallList list, const std::vector<Wrong>& wanted, DefectJudge* judge, const ToldReduction& told)
      : calls_(std::move(list)),
        list_(calls_.list()),
        steps_(calls_.steps()),
        wanted_(wanted),
        judge_(judge),
        told_(told),
        kept_(steps_.size(), true) {
    so_far_.before = CountCalls(list_);
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
        shown = judge_->Look(calls_.Build(kept_));
        if (!shown.ok()) return shown.status();
      }
      if (HasWanted(*shown)) break;
      const Kept all = kept_;
      if (!DropOtherPlaces()) continue;
      Result<DefectShown> chosen = judge_->Look(calls_.Build(kept_));
      if (!chosen.ok()) return chosen.status();
      if (HasWanted(*chosen)) {
        shown = std::move(chosen);
        break;
      }
      kept_ = all;
    }
    if (!HasWanted(*shown)) {
      return {Exit::Environment,
              "the recorded calls, made again one after the other, show " + InWords(*shown) + WhatIsMissing(*whole) + WhatReturnsLack()};
    }
    first_ = std::move(*shown);
    most_unlike_ = first_.unlike.size();
    return {};
  }

  Status Reduce() {
    for (std::size_t before = 0; before != Count();) {
      ++so_far_.pass;
      so_far_.tried = 0;
      so_far_.planned = ListsOfGroups() + ListsOfParts(Count() / 2);
      if (so_far_.pass == 1) DropClasses();
      before = Count();
      DropGroups();
      Minimize();
      DropTriples();
    }
    return failed_;
  }

  CallList Take() const { return calls_.Build(kept_); }

  std::set<std::uint32_t> Cycles() const { return calls_.Numbers(&Step::cycle); }

  // The calls outside of cycles and those of these cycles, without those that use what another cycle makes.
  CallList OfCycles(const std::set<std::uint32_t>& cycles) const {
    Kept kept(steps_.size());
    for (std::size_t i = 0; i < steps_.size(); ++i) kept[i] = steps_[i]->cycle == 0 || cycles.contains(steps_[i]->cycle);
    (void)calls_.Close(&kept);
    return calls_.Build(kept);
  }

  std::vector<std::string> Unlike() const {
    std::vector<std::string> calls;
    const CallList list = calls_.Build(kept_);
    const Result<DefectShown> shown = judge_->Look(list);  // points at the steps of the list
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

  // Takes the list without these calls when it shows the same.
  bool Without(const std::vector<std::size_t>& dropped) {
    if (told_) {
      so_far_.left = so_far_.before - static_cast<std::size_t>(std::count(kept_.begin(), kept_.end(), false));
      so_far_.planned = std::max(so_far_.planned, so_far_.tried + 1);
      told_(so_far_);
      ++so_far_.tried;
    }
    if (dropped.empty() || !failed_.ok()) return false;
    Kept less = kept_;
    for (const std::size_t one : dropped) less[one] = false;
    if (less == kept_ || !calls_.Close(&less)) return false;
    const CallList list = calls_.Build(less);
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

  // Why it may not be seen that something is left changed.
  std::string WhatReturnsLack() const {
    if (std::none_of(wanted_.begin(), wanted_.end(), [](const Wrong& one) { return IsOfPutBack(one.rule); })) return {};
    const std::vector<Step>& path = list_.stages.back().steps;
    const bool goes_on = std::any_of(path.begin(), path.end(), [](const Step& step) { return step.goes_on; });
    return goes_on ? "; missing: a call that works with what was changed, after the function that changed it had returned"
                   : "; missing: a call after the function that made the change had returned";
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
    if (others.empty() || !calls_.Close(&less)) return false;
    kept_ = std::move(less);
    return true;
  }

  // What failed in the program did nothing there, and may succeed here: cuDevicePrimaryCtxRelease when the driver was shut down already.
  void DropFailed(const DefectShown&) {
    for (std::size_t i = 0; i < steps_.size(); ++i) kept_[i] = steps_[i]->succeeded;
    (void)calls_.Close(&kept_);
  }

  void DropUnlike(const DefectShown& shown) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (std::find(shown.unlike.begin(), shown.unlike.end(), steps_[i]) != shown.unlike.end()) kept_[i] = false;
    }
    (void)calls_.Close(&kept_);
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

  // How many lists DropGroups tries at most, and Minimize from parts of this size on when nothing is left out.
  std::size_t ListsOfGroups() const {
    std::size_t lists = list_.variables.size();
    for (const auto of : {&Step::thread, &Step::cycle}) {
      const std::size_t groups = calls_.Numbers(of).size();
      lists += groups > 1 ? groups : 0;
    }
    return lists;
  }

  std::size_t ListsOfParts(std::size_t part) const {
    std::size_t lists = 0;
    for (part = std::max<std::size_t>(1, part);; part /= 2) {
      lists += (Count() + part - 1) / part;
      if (part == 1) return lists;
    }
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
    for (const auto of : {&Step::thread, &Step::cycle}) {
      const std::set<std::uint32_t> groups = calls_.Numbers(of);
      for (const std::uint32_t one : groups) {
        if (groups.size() > 1) Without(Where([&](const Step& step) { return step.*of == one; }));
      }
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
      so_far_.planned = so_far_.tried + ListsOfParts(part);
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
    std::map<std::size_t, std::vector<std::size_t>> triples;  // the first call, and what may end it
    std::size_t lists = 0;
    for (const std::size_t first : left) {
      if (!driver::IsAcquire(row(first).effect) && row(first).effect != driver::Effect::PushesContext) continue;
      std::vector<std::size_t>& ends = triples[first];
      for (const std::size_t one : left) {
        if (one > first && driver::IsRelease(row(one).effect) && IsOf(row(first), row(one))) ends.push_back(one);
      }
      lists += ends.size() * (ends.size() + 1) / 2;
    }
    so_far_.planned = so_far_.tried + std::min(lists, kMostTriples);
    std::size_t tries = 0;
    for (const auto& [first, ends] : triples) {
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

  const KeptCalls calls_;
  const CallList& list_;
  const std::vector<const Step*>& steps_;
  const std::vector<Wrong>& wanted_;
  DefectJudge* const judge_;
  const ToldReduction& told_;
  ReducedSoFar so_far_;
  Kept kept_;
  DefectShown first_;
  std::size_t most_unlike_ = 0;
  Status failed_;
};

}  // namespace

Result<Reduction> ReduceCalls(CallList list, const std::vector<Wrong>& wanted, DefectJudge* judge, const ToldReduction& told) {
  Reduction reduction;
  reduction.before = CountCalls(list);
  Reducer reducer(std::move(list), wanted, judge, told);
  Status status = reducer.Begin();
  if (status.ok()) status = reducer.Reduce();
  if (!status.ok()) return status;
  reduction.list = reducer.Take();
  reduction.unlike = reducer.Unlike();
  reduction.looks = judge->looks();
  return reduction;
}

Result<Reduction> ReduceToOneCycle(const CallList& list, const std::vector<Wrong>& wanted, DefectJudge* judge, const ToldReduction& told) {
  const Reducer whole(list, wanted, judge, told);
  std::set<std::uint32_t> cycles = whole.Cycles();
  cycles.erase(0);
  if (cycles.empty()) return ReduceCalls(list, wanted, judge, told);
  if (cycles.size() > kMostCyclesTried) cycles.erase(std::next(cycles.begin(), kMostCyclesTried), cycles.end());
  ReducedSoFar so_far = {.planned = 2 * cycles.size() - 1};
  so_far.left = so_far.before = CountCalls(list);
  Status first;  // what the first cycle shows instead
  for (const bool after_first : {false, true}) {
    for (const std::uint32_t cycle : cycles) {
      if (after_first && cycle == *cycles.begin()) continue;
      if (told) told(so_far);
      ++so_far.tried;
      std::set<std::uint32_t> tried = {cycle};
      if (after_first) tried.insert(*cycles.begin());
      Result<Reduction> reduction = ReduceCalls(whole.OfCycles(tried), wanted, judge, told);
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
