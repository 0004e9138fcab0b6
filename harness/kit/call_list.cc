// SPDX-License-Identifier: MIT
#include "harness/kit/call_list.h"

#include <algorithm>
#include <map>
#include <utility>

namespace cuaudit::harness {

std::size_t CountCalls(const CallList& list) {
  std::size_t count = 0;
  for (const Stage& stage : list.stages) count += stage.steps.size() + stage.rest.size() + (stage.failing ? 1 : 0);
  return count;
}

std::vector<std::string> FaultsOf(const CallList& list) {
  std::vector<std::string> faults;
  std::map<driver::BaseId, std::uint32_t> made;
  for (const Stage& stage : list.stages) {
    for (const Step& step : stage.steps) ++made[driver::BaseOf(step.call)];
    if (!stage.failing) continue;
    faults::Fault fault = stage.failing->fault;
    fault.occurrence = ++made[fault.base];
    fault.site = 0;
    fault.follows = false;
    fault.phase = faults::Phase::Any;
    char text[faults::kMaxFaultText];
    faults.emplace_back(text, faults::FormatFault(fault, text, sizeof(text)));
  }
  return faults;
}

namespace {

void AddVariables(const Step& step, bool outputs, std::set<int>* variables) {
  for (const CallValue& value : step.values) {
    const bool is_written = value.is == CallValue::Is::Output || value.is == CallValue::Is::Exchange;
    if (value.variable != kNoVariable && is_written == outputs) variables->insert(value.variable);
  }
}

}  // namespace

KeptCalls::KeptCalls(CallList list) : list_(std::move(list)) {
  for (const Stage& stage : list_.stages) {
    for (const Step& step : stage.steps) steps_.push_back(&step);
    for (const Step& step : stage.rest) steps_.push_back(&step);
    if (stage.failing) AddVariables(stage.failing->step, true, &written_);
  }
  for (const Step* const step : steps_) AddVariables(*step, true, &written_);
}

CallList KeptCalls::Build(const Kept& kept) const {
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

bool KeptCalls::Close(Kept* kept) const {
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

std::set<std::uint32_t> KeptCalls::Numbers(std::uint32_t Step::*of) const {
  std::set<std::uint32_t> numbers;
  for (const Step* const step : steps_) numbers.insert(step->*of);
  return numbers;
}

}  // namespace cuaudit::harness
