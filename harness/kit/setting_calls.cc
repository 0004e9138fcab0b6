// SPDX-License-Identifier: MIT
#include "harness/kit/setting_calls.h"

#include <algorithm>
#include <cstddef>

#include "harness/ledger/arguments.h"
#include "harness/verdict/context/setting_changes.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

using driver::SettingOf;
using driver::SettingRow;
using faults::Record;

namespace {

// The argument that tells a value: itself, or the last one, which points to it.
CallValue& TellerOf(std::int8_t index, Step* step) {
  const auto at = static_cast<std::size_t>(index);
  return step->values[std::min(at, step->values.size() - 1)];
}

}  // namespace

void SettingValues::Write(const Record& record, Step* step) {
  const SettingRow* const set = SetterOf(record);
  const SettingRow* const row = set != nullptr ? set : QuestionOf(record);
  if (row == nullptr || step->values.empty()) return;
  const bool has_object = row->of != SettingOf::Context && row->of != SettingOf::Thread;
  const auto name = [&](std::int8_t object, std::int8_t key) {
    return Name(row, has_object ? SettingArgument(record, object) : 0, SettingArgument(record, key));
  };
  const bool exchanges = row->set == row->get;
  if (set != nullptr) {
    const std::uint64_t value = SettingArgument(record, row->value);
    CallValue& given = TellerOf(exchanges ? row->answer : row->value, step);
    const auto told = told_.find(name(row->object, row->key));
    const bool is_told = told != told_.end() && told->second.value == value;
    if (is_told) {
      given = told->second.holds;
    } else if (exchanges) {
      given = {CallValue::Is::Exchange, value, given.variable};
    } else if (static_cast<std::size_t>(row->value) >= step->values.size()) {
      given = {CallValue::Is::Pointee, value};
    }
  }
  if ((set != nullptr && !exchanges) || record.result != CUDA_SUCCESS) return;
  CallValue holds = TellerOf(row->answer, step);
  if (holds.is != CallValue::Is::Output && holds.is != CallValue::Is::Exchange) return;
  const bool by_pointer = static_cast<std::size_t>(row->answer) >= step->values.size();
  holds.is = exchanges ? CallValue::Is::Output : by_pointer ? CallValue::Is::Pointee : CallValue::Is::Variable;
  holds.number = 0;
  told_[name(row->object_asked, row->key_asked)] = {SettingArgument(record, row->answer), holds};
}

bool IsOfPutBack(Rule rule) {
  return rule == Rule::SettingNotRestored || rule == Rule::ContextNotRestored || rule == Rule::CaptureLeftActive;
}

FunctionReturns::FunctionReturns(std::span<const Observation> runs, std::span<const Wrong> wanted) {
  if (runs.size() < 2 || std::none_of(wanted.begin(), wanted.end(), [](const Wrong& one) { return IsOfPutBack(one.rule); })) return;
  const Evidence trial = runs.back().evidence();
  settings_.emplace(runs.front().evidence());
  others_.emplace(runs.front().evidence());
  for (const std::vector<TrialFinding>& findings : {settings_->Missing(trial), others_->Missing(trial)}) {
    for (const TrialFinding& finding : findings) places_.push_back(finding.where_key);
  }
}

std::uint64_t FunctionReturns::In(const Observation& run, std::uint64_t failed) const {
  std::uint64_t last = 0;
  for (const std::uint64_t place : places_) {
    const Evidence evidence = run.evidence();
    std::optional<std::uint64_t> one = settings_->ReturnFrom(evidence, place, failed);
    if (!one) one = others_->ReturnFrom(evidence, place, failed);
    if (one && *one > failed) last = std::max(last, *one);
  }
  return last == 0 ? kNever : last;
}

}  // namespace cuaudit::harness
