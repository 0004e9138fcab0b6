// SPDX-License-Identifier: MIT
#include "harness/verdict/context/restored_settings.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/journal/record.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/context/put_back_calls.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {

using driver::BaseId;
using driver::Kind;
using driver::SettingOf;
using faults::Record;

// When the functions of a run return, as far as its calls show it. Many changes at one place ask for the same, so it keeps what it has
// found.
class Returns {
 public:
  explicit Returns(const Evidence& run) : run_(run) {}

  // The first call of the thread, from that one on, from outside of the function which the frame at `level` of the stack of `call` called;
  // kNoCall: none.
  std::size_t Outside(const faults::Record& call, std::size_t level, std::size_t from);
  // What SharedLevel (evidence.h) answers.
  std::size_t SharedBy(std::size_t first, std::size_t last);
  // The first call of the run after the last one of a thread that has ended; kNoCall: it may still run, or made the process exit.
  std::size_t AfterThread(const faults::Record& call);

 private:
  using Function = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // process, thread, frame that called it

  const Evidence& run_;
  std::map<Function, std::map<std::size_t, std::size_t>> outside_;  // from a call on: the first one from outside
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> after_;
};

std::size_t Returns::Outside(const Record& call, std::size_t level, std::size_t from) {
  const std::span<const std::uint64_t> frames = run_.journal->Stack(call.stack);
  if (level >= frames.size()) return kNoCall;
  std::map<std::size_t, std::size_t>& known = outside_[{call.pid, call.tid, frames[level]}];
  const auto next = known.upper_bound(from);
  if (next != known.begin() && std::prev(next)->second >= from) return std::prev(next)->second;
  std::size_t found = kNoCall;
  for (std::size_t step = from; found == kNoCall && step < run_.facts().calls.size(); ++step) {
    const Record& record = run_.call(step);
    if (record.pid != call.pid || record.tid != call.tid || record.stack == 0) continue;
    if (!IsWithin(run_, record, frames[level])) found = step;
  }
  return known[from] = found;
}

std::size_t Returns::SharedBy(std::size_t first, std::size_t last) {
  const Record& from = run_.call(first);
  const Record& to = run_.call(last);
  const std::size_t frames = run_.journal->Stack(from.stack).size();
  if (to.pid != from.pid || to.tid != from.tid) return kNoLevel;
  for (std::size_t level = 1; level < frames; ++level) {
    const std::size_t outside = Outside(from, level, first + 1);
    if (outside == kNoCall || outside > last) return level;
  }
  return kNoLevel;
}

std::size_t Returns::AfterThread(const Record& call) {
  const auto [known, is_new] = after_.try_emplace({call.pid, call.tid}, kNoCall);
  const ProcessFacts* const process = run_.facts().Process(call.pid);
  if (!is_new || process == nullptr || process->exit == 0) return known->second;
  if (std::count(process->running.begin(), process->running.end(), call.tid) != 0) return kNoCall;
  const std::span<const Record> records = run_.journal->records();
  if (std::any_of(records.begin(), records.end(), [&](const Record& one) { return one.begin == process->exit && one.tid == call.tid; }))
    return kNoCall;
  const std::vector<std::uint32_t>& calls = run_.facts().calls;
  const auto is_its = [&](std::uint32_t index) { return run_.record(index).pid == call.pid && run_.record(index).tid == call.tid; };
  return known->second = static_cast<std::size_t>(std::find_if(calls.rbegin(), calls.rend(), is_its).base() - calls.begin());
}

namespace {

// True for what a tear-down begins with: it waits, and fetches the last result. No setting changes what becomes of that.
bool WindsUp(const Record& record) {
  switch (BaseOf(record)) {
    case BaseId::CtxSynchronize:
    case BaseId::StreamSynchronize:
    case BaseId::StreamQuery:
    case BaseId::StreamWaitEvent:
    case BaseId::EventRecord:
    case BaseId::EventSynchronize:
    case BaseId::MemcpyDtoH:
    case BaseId::MemcpyDtoHAsync:
    case BaseId::MemPoolTrimTo:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool WorksWith(const Setting& setting, const Record& record, std::uint64_t current) {
  const driver::EffectRow& row = driver::EffectOf(BaseOf(record));
  if (record.pid != setting.pid || WindsUp(record) || SetterOf(record) != nullptr) return false;
  const bool names_its_pool = BaseOf(record) == BaseId::MemAllocFromPoolAsync;
  const bool takes_from_pool = driver::IsAcquire(row.effect) && row.kind == Kind::StreamOrderedMemory && !names_its_pool;
  const auto names = [&] {
    return std::find(std::begin(record.argument), std::end(record.argument), setting.object) != std::end(record.argument) &&
           !driver::IsRelease(row.effect) && !OnlyLooks(record, row.effect);
  };
  switch (setting.row->of) {
    case SettingOf::Context:
      return current == setting.object && NeedsCurrent(record, row.effect);
    case SettingOf::Thread:
      return record.tid == setting.object && NeedsCurrent(record, row.effect);
    case SettingOf::Device:
      return takes_from_pool && setting.row->set == BaseId::DeviceSetMemPool;
    case SettingOf::MemoryPool:
      return takes_from_pool || names();
    case SettingOf::Function:
    case SettingOf::Kernel:
    case SettingOf::Stream:
    case SettingOf::Memory:
    case SettingOf::Executable:
      return names();
  }
  return false;
}

namespace {

// The calls that give what was changed a value, between the change and the call at `until`.
std::span<const SettingCall> CallsAfter(const SettingChanges& made, const SettingChange& change, std::size_t until) {
  const std::vector<SettingCall>& calls = made.calls.at(change.setting);
  const auto at = [&](std::size_t step) {
    return std::partition_point(calls.begin(), calls.end(), [step](const SettingCall& call) { return call.step < step; });
  };
  return {at(change.step + 1), at(std::max(until, change.step + 1))};
}

// The value of the setting when the call at `until` is made; what has the setting is there until then.
std::uint64_t ValueBefore(const SettingChanges& made, const SettingChange& change, std::size_t until) {
  const std::span<const SettingCall> calls = CallsAfter(made, change, until);
  const auto last = std::find_if(calls.rbegin(), calls.rend(), [](const SettingCall& call) { return !call.failed; });
  return last == calls.rend() ? change.value : last->value;
}

// True when the program went back, and did not only choose other values one after the other: it knew the former value, or the function that
// made the change put back what had been chosen outside of it. The value has to stay until the function has returned.
bool PutsBack(const Evidence& run, const SettingChanges& made, const SettingChange& change, std::size_t level, Returns* returns) {
  if (!change.found) {
    const std::span<const std::uint64_t> frames = run.journal->Stack(change.record->stack);
    if (level != 1 || frames.size() < 2 || change.given == kNoCall || IsWithin(run, run.call(change.given), frames[1])) return false;
  }
  const std::size_t returned = returns->Outside(*change.record, level, change.undone + 1);
  return ValueBefore(made, change, std::min(returned, change.ended)) == change.before;
}

}  // namespace

RestoredSettings::RestoredSettings(const Evidence& fault_free) {
  const SettingChanges made = SettingChangesOf(fault_free);
  Returns returns(fault_free);
  for (const SettingChange& change : made.changes) {
    const auto [place, is_new] = undone_.try_emplace(SiteKey(*fault_free.journal, SiteOf(*change.record)));
    Undone& undone = place->second;
    if (!undone.always) continue;
    // The same call with another value is no way back: each turn of a loop chooses its own.
    if (change.undone == kNoCall || fault_free.call(change.undone).stack == change.record->stack) {
      undone.always = false;
      continue;
    }
    const std::size_t level = returns.SharedBy(change.step, change.undone);
    undone.always = PutsBack(fault_free, made, change, level, &returns);
    undone.level = std::max(undone.level, level);
    const std::span<const SettingCall> between = CallsAfter(made, change, change.undone);
    const auto is_same = [&](const SettingCall& call) { return fault_free.call(call.step).stack == change.record->stack; };
    undone.once = undone.once && std::none_of(between.begin(), between.end(), is_same);
    const std::uint32_t cycle = fault_free.call(change.undone).cycle;
    undone.in_its_cycle = undone.in_its_cycle && cycle != 0 && cycle == change.record->cycle;
    const Record* const end = undone.in_its_cycle ? EndOfCycle(fault_free, *change.record) : nullptr;
    undone.in_its_cycle =
        undone.in_its_cycle &&
        (end == nullptr || ValueBefore(made, change, std::min(fault_free.first_call_from(end->begin), change.ended)) == change.before);
    if (is_new) undone.back = SiteOf(fault_free.call(change.undone));
    if (is_new) undone.outlives_cycle = change.ended == kNoCall || (end != nullptr && fault_free.call(change.ended).begin > end->begin);
  }
}

// What became of a change that the trial did not undo.
struct RestoredSettings::Left {
  std::size_t returned = kNoCall;  // the first call after the function had returned that does more than look, or the end of what counts
  std::uint64_t value = 0;         // that the function left
  bool is_chosen = false;          // the function chose it when it failed
};

RestoredSettings::Left RestoredSettings::LeftBy(const Evidence& trial, const SettingChanges& made, const SettingChange& change,
                                                const Undone& undone, std::size_t until, Returns* returns) const {
  Left left;
  left.returned = returns->Outside(*change.record, undone.level, change.step + 1);
  while (left.returned != kNoCall && OnlyLooks(trial.call(left.returned), EffectOfCall(trial.call(left.returned))))
    left.returned = returns->Outside(*change.record, undone.level, left.returned + 1);
  const bool is_known = undone.level < trial.journal->Stack(change.record->stack).size();
  if (is_known && left.returned == kNoCall) left.returned = returns->AfterThread(*change.record);
  left.returned = std::min(left.returned, until);
  std::span<const SettingCall> calls = CallsAfter(made, change, left.returned);
  // A loop calls the function again, from the same place.
  const auto again = std::find_if(calls.begin(), calls.end(),
                                  [&](const SettingCall& call) { return trial.call(call.step).stack == change.record->stack; });
  if (is_known && again != calls.end() && undone.once) left.returned = again->step;
  left.value = ValueBefore(made, change, left.returned);
  calls = CallsAfter(made, change, left.returned);
  const auto last = std::find_if(calls.rbegin(), calls.rend(), [](const SettingCall& call) { return !call.puts_back; });
  if (last == calls.rend()) return left;
  const auto known = undone_.find(SiteKey(*trial.journal, SiteOf(trial.call(last->step))));
  left.is_chosen = known == undone_.end() || !known->second.always;
  return left;
}

namespace {

// True when the two calls were made at the same place of the function that the frame at `level` called.
bool IsSamePlace(const Evidence& run, const Record& one, const Record& other, std::size_t level) {
  const std::span<const std::uint64_t> a = run.journal->Stack(one.stack);
  const std::span<const std::uint64_t> b = run.journal->Stack(other.stack);
  return level <= a.size() && level <= b.size() && std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(level), b.begin());
}

// True when the setting is as the function left it at the call with that ticket, and nobody has chosen that value. Another call of the
// function chooses none, nor does who puts back what it found.
bool Stands(const Evidence& trial, const SettingChanges& made, const SettingChange& change, std::size_t level, std::size_t returned,
            std::uint64_t value, std::uint64_t ticket) {
  const std::uint64_t left = value;
  for (const SettingCall& call : made.calls.at(change.setting)) {
    const Record& record = trial.call(call.step);
    if (call.step < returned || record.begin >= ticket) continue;
    const bool is_undone = call.change != kNoCall && made.changes[call.change].found && made.changes[call.change].undone != kNoCall;
    if (!call.puts_back && !is_undone && !IsSamePlace(trial, record, *change.record, level)) return false;
    if (!call.failed) value = call.value;
  }
  return value == left;
}

}  // namespace

std::vector<TrialFinding> RestoredSettings::Missing(const Evidence& trial) const {
  std::vector<TrialFinding> findings;
  if (undone_.empty()) return findings;
  const SettingChanges made = SettingChangesOf(trial);
  Returns returns(trial);
  const std::set<std::uint32_t> vanished = trial.facts().Vanished();
  std::set<Setting> found;  // who puts the outer change back does the same for the inner ones
  for (const SettingChange& change : made.changes) {
    if (change.undone != kNoCall || change.denied || vanished.count(change.record->pid) != 0 || found.count(change.setting) != 0) continue;
    const auto known = undone_.find(SiteKey(*trial.journal, SiteOf(*change.record)));
    if (known == undone_.end() || !known->second.always) continue;
    const Undone& undone = known->second;
    const Record* const end = undone.in_its_cycle && undone.outlives_cycle ? EndOfCycle(trial, *change.record) : nullptr;
    const std::size_t until = std::min(end == nullptr ? trial.facts().calls.size() : trial.first_call_from(end->begin), change.ended);
    const Left left = LeftBy(trial, made, change, undone, until, &returns);
    if (left.is_chosen) continue;
    const auto stands = [&](std::uint64_t ticket) { return Stands(trial, made, change, undone.level, left.returned, left.value, ticket); };
    const Record* user = nullptr;
    for (std::size_t step = left.returned; user == nullptr && step < until; ++step) {
      if (WorksWith(change.setting, trial.call(step), made.current[step])) user = &trial.call(step);
    }
    if (user != nullptr && !stands(user->begin)) user = nullptr;
    const bool at_end = end != nullptr && (change.ended == kNoCall || change.ended >= until) && stands(end->begin);
    if (user == nullptr && !at_end) continue;
    found.insert(change.setting);
    Details* const detail = &AddChange(trial, Rule::SettingNotRestored, Kind::None, *change.record, user, &findings)->detail;
    for (const auto& part : WordsOf(change, left.value)) {
      if (std::find(detail->begin(), detail->end(), part) == detail->end()) detail->push_back(part);
    }
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
  const Record* const end = known->second.in_its_cycle ? EndOfCycle(run, *last->record) : nullptr;
  const std::size_t until = end == nullptr ? run.facts().calls.size() : run.first_call_from(end->begin);
  Returns returns(run);
  const std::size_t returned = LeftBy(run, made, *last, known->second, until, &returns).returned;
  if (returned < until) return run.call(returned).begin;
  return end == nullptr ? std::nullopt : std::optional(end->begin);
}

Site RestoredSettings::BackAt(std::uint64_t place) const {
  const auto known = undone_.find(place);
  return known != undone_.end() && known->second.always ? known->second.back : Site();
}

bool MayLeaveSettings(const Evidence& run) {
  const SettingChanges made = SettingChangesOf(run);
  return std::any_of(made.changes.begin(), made.changes.end(),
                     [](const SettingChange& change) { return change.undone == kNoCall && !change.undoes; });
}

}  // namespace cuaudit::harness
