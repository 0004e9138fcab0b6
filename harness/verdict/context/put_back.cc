// SPDX-License-Identifier: MIT
#include "harness/verdict/context/put_back.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "faults/journal/stack_key.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/context/put_back_calls.h"
#include "harness/verdict/context/restored_entries.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {

using driver::BaseId;
using driver::Effect;
using driver::Kind;
using faults::MarkKind;
using faults::Record;

namespace {

// The context that a stream was made in; 0: unknown.
std::uint64_t HomeOf(const Evidence& run, std::uint64_t stream, std::uint64_t when) {
  for (const Object& object : run.ledger->objects) {
    const bool is_it = object.kind == Kind::Stream && object.handle == stream && object.acquired.begin < when;
    const bool ended = object.state == State::Released || object.state == State::Orphaned;  // else `released` only tried to
    if (is_it && (!ended || object.released.record_kind == faults::RecordKind::Empty || object.released.begin > when))
      return object.context;
  }
  return 0;
}

// The same for one instruction in all runs of the program.
std::uint64_t FrameKey(const Evidence& run, std::uint64_t frame) {
  return faults::MixStack(faults::kKeySeed, {&frame, 1}, run.journal->tables());
}

std::set<std::uint64_t> CallersOf(const Evidence& run, std::uint32_t stack) {
  std::set<std::uint64_t> callers;
  const std::span<const std::uint64_t> frames = run.journal->Stack(stack);
  for (std::size_t i = 1; i < frames.size(); ++i) callers.insert(FrameKey(run, frames[i]));
  return callers;
}

bool EndsBetween(const Evidence& run, const Record& first, const Record& second) {
  return std::any_of(run.facts().marks.begin(), run.facts().marks.end(), [&](std::uint32_t index) {
    const Record& mark = run.record(index);
    return IsMark(mark, MarkKind::CycleEnd) && mark.begin > first.begin && mark.begin < second.begin;
  });
}

struct Change {
  Kind kind{};  // of what was changed: Context or Stream
  const Record* record = nullptr;
  std::size_t step = 0;             // which of the run's calls it is
  std::uint64_t before = 0;         // the context that was current, or the stream
  std::size_t undone = kNoCall;     // the call that undoes the change, or tries to
  std::size_t destroyed = kNoCall;  // the call that destroys the stream
  bool denied = false;              // the program was told that the change had failed
  int above = 0;                    // of the thread's context stack, as Follow counts
  bool TakesOff() const { return EffectOfCall(*record) == Effect::PopsContext; }
  bool IsFromNone() const { return kind == Kind::Context && before == 0; }
};

// A refused call that was to put a context back. It may be made again as long as the function runs that was to do so.
struct Retry {
  std::uint64_t context = 0;
  std::optional<std::uint64_t> function;  // the frame that called it; none: unknown
};

Retry RetryOf(const Evidence& run, std::uint64_t context, std::size_t change, std::size_t refused) {
  const std::size_t level = SharedLevel(run, change, refused);
  if (level == kNoLevel) return {context, std::nullopt};
  return {context, run.journal->Stack(run.call(change).stack)[level]};
}

// Makes `entries` for a run that takes contexts off.
std::vector<Change> ChangesOf(const Evidence& run, std::optional<RestoredEntries>* entries) {
  std::vector<Change> changes;
  std::vector<std::size_t> open;
  std::map<std::uint32_t, std::size_t> moved;  // by thread: the last call that pushed, popped or destroyed a context
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Retry>> refused;  // by process and thread
  for (std::size_t step = 0; step < run.facts().calls.size(); ++step) {
    const Record& record = run.call(step);
    const Effect effect = EffectOfCall(record);
    const auto retries = refused.find({record.pid, record.tid});
    if (retries != refused.end() && record.stack != 0) {
      std::erase_if(retries->second, [&](const Retry& one) { return one.function && !IsWithin(run, record, *one.function); });
    }
    std::erase_if(open, [&](std::size_t one) {
      Change& change = changes[one];
      if (change.record->pid != record.pid) return false;
      if (change.kind == Kind::Stream) {
        const bool mine = StreamOf(record) == change.before;
        if (mine && effect == Effect::EndsCapture) change.undone = step;
        if (mine && effect == Effect::Releases && driver::EffectOf(BaseOf(record)).kind == Kind::Stream) change.destroyed = step;
        // The end of a context drops the captures in it. Which streams lie in a primary one does not matter: nothing is claimed of any.
        if (effect == Effect::ReleasesPrimary || effect == Effect::ResetsPrimary) change.destroyed = step;
        if (effect == Effect::DestroysContext) {
          const std::uint64_t home = HomeOf(run, change.before, change.record->begin);
          if (home == 0 || home == record.argument[0]) change.destroyed = step;
        }
        return change.undone != kNoCall || change.destroyed != kNoCall;
      }
      if (change.record->tid != record.tid) return false;
      // Of a lifecycle in C++ the harness makes the caller's context current again before the next cycle.
      if (run.steps != nullptr && EndsBetween(run, *change.record, record)) return false;
      const bool tries = effect == Effect::SetsContext || (effect == Effect::PushesContext && AnswerOf(record) != Answer::Succeeded);
      if (tries && record.argument[0] == change.before) {
        change.undone = step;
        if (AnswerOf(record) != Answer::Succeeded)
          refused[{record.pid, record.tid}].push_back(RetryOf(run, change.before, change.step, step));
      }
      const bool is_current = (driver::RecordsContext(effect) && record.context == change.before) ||
                              (BaseOf(record) == BaseId::CtxGetCurrent && record.result == 0 && record.argument[0] == change.before);
      // Between a push and its pop the former context may be current for a while. The pop goes back to the change.
      if (change.undone == kNoCall && is_current && change.above <= 0) {
        const auto by = moved.find(record.tid);
        change.undone = by != moved.end() && by->second > change.step ? by->second : step;
      }
      Follow(record, effect, &change.above);
      return change.undone != kNoCall;
    });
    if (effect == Effect::PushesContext || effect == Effect::PopsContext || effect == Effect::DestroysContext) moved[record.tid] = step;
    const Answer answer = AnswerOf(record);
    if (answer != Answer::Succeeded && answer != Answer::After) continue;
    const bool captures = effect == Effect::BeginsCapture;
    const bool takes = effect == Effect::PopsContext && record.context != 0 && record.cycle == 0;  // the ledger judges marked cycles
    const bool from_none = effect == Effect::SetsContext && record.context == 0 && record.argument[0] != 0;
    if (!captures && !takes && !from_none && !SwitchesContext(record, effect)) continue;
    const auto is_it = [&](const Retry& one) { return one.context == record.argument[0]; };
    if (effect == Effect::SetsContext && retries != refused.end() && std::erase_if(retries->second, is_it) != 0)
      continue;  // the way back, tried again
    if (takes && !*entries) entries->emplace(run);
    if (takes && !(*entries)->IsTaking(SiteOf(record))) continue;  // the other half of a push
    open.push_back(changes.size());
    changes.push_back({captures ? Kind::Stream : Kind::Context, &record, step, captures ? StreamOf(record) : record.context});
    changes.back().denied = answer == Answer::After;
    if (takes) changes.back().above = -1;
  }
  return changes;
}

struct Outlived {
  const Record* call = nullptr;
  std::size_t step = kNoCall;   // the first call of the thread after the function had returned, also where `end` comes first
  const Record* end = nullptr;  // of the marked cycle
  bool IsAfter(const Record* record) const { return end != nullptr && record != nullptr && record->begin > end->begin; }
};

// Where the trial shows that the change outlived its function: the first call of the thread after the function had returned that does more
// than look, unless the marked cycle ends before it, and the end of that cycle. Both are null when it does not show.
Outlived OutlivedAt(const Evidence& trial, const Change& change, const PutBack::Undone& undone) {
  Outlived outlived;
  const std::size_t calls = trial.facts().calls.size();
  const std::span<const std::uint64_t> frames = trial.journal->Stack(change.record->stack);
  for (std::size_t step = change.step + 1; undone.level < frames.size() && outlived.call == nullptr && step < calls; ++step) {
    const Record& record = trial.call(step);
    if (record.pid != change.record->pid || record.tid != change.record->tid || record.stack == 0) continue;
    if (IsWithin(trial, record, frames[undone.level]) || OnlyLooks(record, EffectOfCall(record))) continue;
    outlived.call = &record;
    outlived.step = step;
  }
  if (undone.in_its_cycle && change.record->cycle != 0) outlived.end = EndOfCycle(trial, *change.record);
  if (outlived.IsAfter(outlived.call)) outlived.call = nullptr;
  return outlived;
}

// Answers whether somebody goes on in the wrong context: makes a call that needs the current one, or comes to the end of the marked cycle.
// Makes that the place of `outlived`.
bool IsInTheWay(const Evidence& trial, const Change& change, Outlived* outlived) {
  constexpr int kNowhere = std::numeric_limits<int>::max();
  int above = 0;
  std::optional<int> left;  // `above`, when the function had returned
  int former = kNowhere;    // `above` with the former context, which the function pushed
  outlived->call = nullptr;
  for (std::size_t step = change.step + 1; step < trial.facts().calls.size(); ++step) {
    const Record& record = trial.call(step);
    if (record.pid != change.record->pid || record.tid != change.record->tid) continue;
    if (outlived->IsAfter(&record)) break;
    const Effect effect = EffectOfCall(record);
    if (step >= outlived->step) {
      if (trial.steps != nullptr && EndsBetween(trial, *change.record, record)) return false;  // the harness has put it back by now
      if (!left) left = above;
      if (above == *left && effect == Effect::SetsContext) return false;  // the caller chooses its context itself
      if (above == *left && record.stack != 0 && NeedsCurrent(record, effect)) {
        outlived->call = &record;
        break;
      }
    }
    Follow(record, effect, &above);
    if (left && above < *left) return false;  // the caller takes off what was changed
    if (left) continue;
    if (effect == Effect::PushesContext && record.argument[0] == change.before && AnswerOf(record) == Answer::Succeeded) former = above;
    if (above < former) former = kNowhere;
  }
  const bool put_back = former != kNowhere;
  if (put_back || (outlived->call == nullptr && outlived->end == nullptr)) return false;
  return !IsGone(trial, change.record->pid, change.before, outlived->call != nullptr ? outlived->call->begin : outlived->end->begin);
}

// True when the thread only releases after the change, until it was seen: it did not go over to the other context to work there.
bool IsWayBack(const Evidence& trial, const Change& change, const Outlived& outlived) {
  for (std::size_t step = change.step + 1; step < trial.facts().calls.size(); ++step) {
    const Record& record = trial.call(step);
    if (step >= outlived.step || outlived.IsAfter(&record)) break;
    const Effect effect = EffectOfCall(record);
    const bool same_thread = record.pid == change.record->pid && record.tid == change.record->tid;
    if (same_thread && !driver::IsRelease(effect) && effect != Effect::SetsContext && !OnlyLooks(record, effect)) return false;
  }
  return true;
}

// The owner of a stream may destroy it although it is under capture. Somebody must have used it before that, or keep it beyond the cycle.
// Makes the use that call of `outlived`.
bool IsUsed(const Evidence& trial, const Change& change, Outlived* outlived) {
  const bool outlives_cycle = outlived->call == nullptr && outlived->end != nullptr;
  if (outlives_cycle && (change.destroyed == kNoCall || outlived->IsAfter(&trial.call(change.destroyed)))) return true;
  for (std::size_t step = outlived->step; step < std::min(change.destroyed, trial.facts().calls.size()); ++step) {
    const Record& record = trial.call(step);
    if (record.pid != change.record->pid || !NamesStream(record, change.before) || OnlyLooks(record, EffectOfCall(record))) continue;
    *outlived = {&record, step, nullptr};
    return true;
  }
  return false;
}

}  // namespace

PutBack::PutBack(const Evidence& fault_free) {
  std::map<std::uint32_t, std::vector<Away>> away_of;  // by thread
  struct PassedOver {
    std::uint64_t site = 0;
    std::size_t innermost = 0;  // InnermostAway
  };
  std::vector<PassedOver> passed;  // not undone while a function is away
  std::optional<RestoredEntries> entries;
  for (const Change& change : ChangesOf(fault_free, &entries)) {
    const bool is_context = change.kind == Kind::Context;
    if (change.IsFromNone()) continue;
    if (change.TakesOff() && !entries->IsPutBack(SiteOf(*change.record))) continue;  // the other half of the call that made the entry
    std::vector<Away>& away = away_of[change.record->tid];
    DropBefore(change.step, &away);
    // The same call with another context is no way back: each turn of a loop chooses its own.
    const bool is_undone = change.undone != kNoCall && fault_free.call(change.undone).stack != change.record->stack;
    const std::uint64_t site = SiteKey(*fault_free.journal, SiteOf(*change.record));
    if (is_context && !is_undone && !away.empty()) {
      passed.push_back({site, InnermostAway(fault_free, change.step, &away, false)});
      continue;
    }
    Undone& undone = undone_[site];
    if (!is_undone) {
      undone.always = false;
      if (is_context) leaving_.merge(CallersOf(fault_free, change.record->stack));
      continue;
    }
    if (is_context) away.push_back({change.step, change.undone + 1});
    undone.level = std::max(undone.level, SharedLevel(fault_free, change.step, change.undone));
    const std::uint32_t cycle = fault_free.call(change.undone).cycle;
    undone.in_its_cycle = undone.in_its_cycle && cycle != 0 && cycle == change.record->cycle;
  }
  for (const PassedOver& one : passed) {
    const auto found = undone_.find(one.site);
    if (found != undone_.end() && found->second.level < one.innermost) found->second.always = false;
  }
  std::set<std::uint32_t> stacks;
  for (const std::uint32_t call : fault_free.facts().calls) {
    if (const std::uint32_t stack = fault_free.record(call).stack; stacks.insert(stack).second)
      entered_.merge(CallersOf(fault_free, stack));
  }
}

// A way back may go to another context to release something there. The innermost function around the change that makes calls in the
// fault-free run, too, is to leave the context as it found it, unless it leaves another one in that run.
PutBack::Undone PutBack::Expected(const Evidence& trial, const Record& change) const {
  Undone expected = {.always = false};
  const std::span<const std::uint64_t> frames = trial.journal->Stack(change.stack);
  for (std::size_t level = 1; level < frames.size(); ++level) {
    const std::uint64_t key = FrameKey(trial, frames[level]);
    if (entered_.count(key) == 0) continue;
    expected.always = leaving_.count(key) == 0;
    expected.in_its_cycle = leaving_.empty();
    expected.level = level;
    break;
  }
  return expected;
}

std::vector<TrialFinding> PutBack::Missing(const Evidence& trial) const {
  std::vector<TrialFinding> findings;
  std::optional<RestoredEntries> entries;
  const std::vector<Change> changes = ChangesOf(trial, &entries);
  if (changes.empty()) return findings;
  const std::set<std::uint32_t> vanished = trial.facts().Vanished();
  std::map<std::uint32_t, std::vector<Away>> away_of;  // by thread; without end once the thread has a finding
  for (const Change& change : changes) {
    const bool is_context = change.kind == Kind::Context;
    std::vector<Away>& away = away_of[change.record->tid];
    DropBefore(change.step, &away);
    if (is_context && change.undone != kNoCall) away.push_back({change.step, change.undone + 1, change.IsFromNone()});
    if (change.undone != kNoCall || change.denied || change.IsFromNone() || vanished.count(change.record->pid) != 0) continue;
    const std::uint64_t key = SiteKey(*trial.journal, SiteOf(*change.record));
    const auto known = undone_.find(key);
    const bool is_known = known != undone_.end();
    if (!is_known && (change.TakesOff() || !is_context)) continue;
    const Undone undone = is_known ? known->second : Expected(trial, *change.record);
    if (!undone.always) continue;
    if (is_context && !away.empty() && undone.level >= InnermostAway(trial, change.step, &away, !is_known)) continue;
    Outlived outlived = OutlivedAt(trial, change, undone);
    if (outlived.call == nullptr && outlived.end == nullptr) continue;
    if (!is_known && !IsWayBack(trial, change, outlived)) continue;
    if (is_context ? !IsInTheWay(trial, change, &outlived) : !IsUsed(trial, change, &outlived)) continue;
    if (is_context) away.emplace_back();
    AddChange(trial, is_context ? Rule::ContextNotRestored : Rule::CaptureLeftActive, change.kind, *change.record, outlived.call,
              &findings);
  }
  return findings;
}

std::optional<std::uint64_t> PutBack::ReturnFrom(const Evidence& run, std::uint64_t place, std::uint64_t before) const {
  const auto known = undone_.find(place);
  if (known == undone_.end()) return std::nullopt;
  std::optional<RestoredEntries> entries;
  const std::vector<Change> changes = ChangesOf(run, &entries);
  const auto last = std::find_if(changes.rbegin(), changes.rend(), [&](const Change& change) {
    return change.record->begin < before && SiteKey(*run.journal, SiteOf(*change.record)) == place;
  });
  if (last == changes.rend()) return std::nullopt;
  const Outlived outlived = OutlivedAt(run, *last, known->second);
  const Record* const returned = outlived.call != nullptr ? outlived.call : outlived.end;
  return returned == nullptr ? std::nullopt : std::optional(returned->begin);
}

bool MayLeaveChanged(const Evidence& run) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> switched;  // thread, and the context that was current
  std::vector<std::pair<std::uint32_t, std::uint64_t>> taken;     // the same of pops that nobody had pushed for
  std::map<std::uint32_t, int> pushed;                            // by thread
  std::vector<std::pair<std::uint32_t, std::uint64_t>> captured;  // process, and the stream
  for (const std::uint32_t index : run.facts().calls) {
    const Record& record = run.record(index);
    const Effect effect = EffectOfCall(record);
    if (effect == Effect::EndsCapture) std::erase(captured, std::pair{record.pid, StreamOf(record)});
    if (effect == Effect::SetsContext) std::erase(switched, std::pair{record.tid, record.argument[0]});
    if (effect == Effect::SetsContext || effect == Effect::PushesContext) std::erase(taken, std::pair{record.tid, record.argument[0]});
    if (AnswerOf(record) != Answer::Succeeded) continue;
    if (effect == Effect::BeginsCapture) captured.emplace_back(record.pid, StreamOf(record));
    if (effect == Effect::PushesContext) ++pushed[record.tid];
    if (effect == Effect::PopsContext && pushed[record.tid]-- <= 0) {
      pushed[record.tid] = 0;
      taken.emplace_back(record.tid, record.context);
    }
    if (SwitchesContext(record, effect)) switched.emplace_back(record.tid, record.context);
  }
  return !captured.empty() || !switched.empty() || !taken.empty();
}

}  // namespace cuaudit::harness
