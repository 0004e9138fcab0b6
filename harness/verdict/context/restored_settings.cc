// SPDX-License-Identifier: MIT
#include "harness/verdict/context/restored_settings.h"

#include <algorithm>
#include <set>
#include <span>

#include "harness/verdict/context/put_back_calls.h"
#include "harness/verdict/context/setting_changes.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {

using driver::Kind;
using driver::SettingOf;
using faults::Record;

RestoredSettings::RestoredSettings(const Evidence& fault_free) {
  for (const SettingChange& change : SettingChangesOf(fault_free).changes) {
    const std::vector<std::uint32_t>& calls = fault_free.facts().calls;
    const auto [place, is_new] = undone_.try_emplace(SiteKey(*fault_free.journal, SiteOf(*change.record)));
    Undone& undone = place->second;
    // The same call with another value is no way back: each turn of a loop chooses its own.
    if (change.undone == kNoCall || fault_free.record(calls[change.undone]).stack == change.record->stack) {
      undone.always = false;
      continue;
    }
    undone.level = std::max(undone.level, SharedLevel(fault_free, change.step, change.undone));
    const std::uint32_t cycle = fault_free.record(calls[change.undone]).cycle;
    undone.in_its_cycle = undone.in_its_cycle && cycle != 0 && cycle == change.record->cycle;
    if (!is_new) continue;
    const std::size_t ended = EndOf(fault_free, change);
    undone.outlives_run = ended == kNoCall;
    const Record* const end = EndOfCycle(fault_free, *change.record);
    undone.outlives_cycle = ended == kNoCall || (end != nullptr && fault_free.record(calls[ended]).begin > end->begin);
  }
}

namespace {

// What became of a change that the trial did not undo.
struct Left {
  std::size_t returned = kNoCall;  // the first call of the thread after the function had returned that does more than look
  std::size_t ended = kNoCall;     // the call that ends what has the setting
  std::uint64_t value = 0;         // that the function left
};

Left LeftBy(const Evidence& trial, const SettingChanges& made, const SettingChange& change, std::size_t level) {
  const std::vector<std::uint32_t>& calls = trial.facts().calls;
  const std::span<const std::uint64_t> frames = trial.journal->Stack(change.record->stack);
  Left left;
  for (std::size_t step = change.step + 1; level < frames.size() && left.returned == kNoCall && step < calls.size(); ++step) {
    const Record& record = trial.record(calls[step]);
    if (record.pid != change.record->pid || record.tid != change.record->tid || record.stack == 0) continue;
    if (!IsWithin(trial, record, frames[level]) && !OnlyLooks(record, EffectOfCall(record))) left.returned = step;
  }
  left.ended = EndOf(trial, change);
  for (const SettingCall& call : made.calls) {
    if (call.setting == change.setting && call.step < left.returned) left.value = call.value;
  }
  return left;
}

// True when nobody has chosen another value before the call with that ticket.
bool Stands(const Evidence& trial, const SettingChanges& made, const SettingChange& change, const Left& left, std::uint64_t ticket) {
  std::uint64_t value = left.value;
  for (const SettingCall& call : made.calls) {
    if (call.setting == change.setting && trial.record(trial.facts().calls[call.step]).begin < ticket) value = call.value;
  }
  return value == left.value;
}

// The first call of the thread that works with what has the setting, after the function had returned and before somebody chose another
// value.
const Record* UserOf(const Evidence& trial, const SettingChanges& made, const SettingChange& change, const Left& left) {
  const std::vector<std::uint32_t>& calls = trial.facts().calls;
  for (std::size_t step = left.returned; step < std::min(left.ended, calls.size()); ++step) {
    const Record& record = trial.record(calls[step]);
    if (record.tid != change.record->tid || !WorksWith(change.setting, record, made.current[step])) continue;
    return Stands(trial, made, change, left, record.begin) ? &record : nullptr;
  }
  return nullptr;
}

// A thread that still runs then may be in the function, and go on to put the setting back. One that has ended has no setting any more.
bool IsThereAtExit(const Evidence& trial, const SettingChange& change, const Left& left) {
  const ProcessFacts* const process = trial.facts().Process(change.record->pid);
  if (process == nullptr || process->exit == 0 || trial.steps != nullptr) return false;
  const std::uint32_t thread = change.record->tid;
  if (std::count(process->running.begin(), process->running.end(), thread) != 0) return left.returned != kNoCall;
  return change.setting.row->of != SettingOf::Thread || thread == change.record->pid;
}

}  // namespace

std::vector<TrialFinding> RestoredSettings::Missing(const Evidence& trial) const {
  std::vector<TrialFinding> findings;
  if (undone_.empty()) return findings;
  const SettingChanges made = SettingChangesOf(trial);
  const std::set<std::uint32_t> vanished = trial.facts().Vanished();
  std::set<Setting> found;  // who puts the outer change back does the same for the inner ones
  for (const SettingChange& change : made.changes) {
    if (change.undone != kNoCall || change.denied || vanished.count(change.record->pid) != 0 || found.count(change.setting) != 0) continue;
    const auto known = undone_.find(SiteKey(*trial.journal, SiteOf(*change.record)));
    if (known == undone_.end() || !known->second.always) continue;
    const Undone& undone = known->second;
    const Left left = LeftBy(trial, made, change, undone.level);
    const Record* const end = undone.in_its_cycle && undone.outlives_cycle ? EndOfCycle(trial, *change.record) : nullptr;
    const auto is_there = [&](std::uint64_t ticket) {
      const bool ended = left.ended != kNoCall && trial.record(trial.facts().calls[left.ended]).begin < ticket;
      return !ended && Stands(trial, made, change, left, ticket);
    };
    const Record* user = UserOf(trial, made, change, left);
    if (user != nullptr && end != nullptr && user->begin > end->begin) user = nullptr;
    const bool at_end = end != nullptr && is_there(end->begin);
    const bool at_exit = undone.outlives_run && IsThereAtExit(trial, change, left) && is_there(~std::uint64_t{0});
    if (user == nullptr && !at_end && !at_exit) continue;
    found.insert(change.setting);
    AddChange(trial, Rule::SettingNotRestored, Kind::None, *change.record, user, &findings);
  }
  return findings;
}

std::optional<std::uint64_t> RestoredSettings::ReturnFrom(const Evidence& run, std::uint64_t place, std::uint64_t before) const {
  const auto known = undone_.find(place);
  if (known == undone_.end()) return std::nullopt;
  const SettingChanges made = SettingChangesOf(run);
  const SettingChange* last = nullptr;
  for (const SettingChange& change : made.changes) {
    if (change.record->begin < before && SiteKey(*run.journal, SiteOf(*change.record)) == place) last = &change;
  }
  if (last == nullptr) return std::nullopt;
  const std::size_t returned = LeftBy(run, made, *last, known->second.level).returned;
  if (returned != kNoCall) return run.record(run.facts().calls[returned]).begin;
  const Record* const end = known->second.in_its_cycle ? EndOfCycle(run, *last->record) : nullptr;
  return end == nullptr ? std::nullopt : std::optional(end->begin);
}

bool MayLeaveSettings(const Evidence& run) {
  const SettingChanges made = SettingChangesOf(run);
  return std::any_of(made.changes.begin(), made.changes.end(), [](const SettingChange& change) { return change.undone == kNoCall; });
}

}  // namespace cuaudit::harness
