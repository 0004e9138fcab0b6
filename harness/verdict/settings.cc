// SPDX-License-Identifier: MIT
#include "harness/verdict/settings.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "harness/ledger/arguments.h"
#include "harness/verdict/function_frames.h"
#include "harness/verdict/put_back_calls.h"

namespace cuaudit::harness {
namespace {

using driver::BaseId;
using driver::Effect;
using driver::Kind;
using faults::Record;

constexpr std::size_t kNoStep = std::numeric_limits<std::size_t>::max();

enum class Setting : std::uint8_t { CaptureMode, Limit, CacheConfig, SharedMemConfig, Flags, Peer, Pool };

struct Touch {
  Setting setting{};
  bool sets = false;        // false: the call only reads the setting
  std::uint64_t which = 0;  // limit, peer or device
  std::uint64_t value = 0;
};

// The record does not hold the mode that cuThreadExchangeStreamCaptureMode sets, only the one before.
constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

// What a call does to a setting.
std::optional<Touch> TouchOf(const Record& record) {
  const std::uint64_t first = record.argument[0];
  const std::uint64_t second = record.argument[1];
  switch (BaseOf(record)) {
    case BaseId::ThreadExchangeStreamCaptureMode:
      return Touch{Setting::CaptureMode, true, 0, kUnknown};
    case BaseId::CtxSetLimit:
      return Touch{Setting::Limit, true, first, second};
    case BaseId::CtxGetLimit:
      return Touch{Setting::Limit, false, second, first};
    case BaseId::CtxSetCacheConfig:
      return Touch{Setting::CacheConfig, true, 0, first};
    case BaseId::CtxGetCacheConfig:
      return Touch{Setting::CacheConfig, false, 0, first};
    case BaseId::CtxSetSharedMemConfig:
      return Touch{Setting::SharedMemConfig, true, 0, first};
    case BaseId::CtxGetSharedMemConfig:
      return Touch{Setting::SharedMemConfig, false, 0, first};
    case BaseId::CtxSetFlags:
      return Touch{Setting::Flags, true, 0, first};
    case BaseId::CtxGetFlags:
      return Touch{Setting::Flags, false, 0, first};
    case BaseId::CtxEnablePeerAccess:
      return Touch{Setting::Peer, true, first, 1};
    case BaseId::CtxDisablePeerAccess:
      return Touch{Setting::Peer, true, first, 0};
    case BaseId::DeviceSetMemPool:
      return Touch{Setting::Pool, true, first, second};
    case BaseId::DeviceGetMemPool:
      return Touch{Setting::Pool, false, second, first};
    case BaseId::DeviceGetDefaultMemPool:
      return Touch{Setting::Pool, false, second, first};
    default:
      return std::nullopt;
  }
}

struct SettingChange {
  const Record* record = nullptr;
  std::size_t step = 0;  // which of the run's calls it is
  std::uint64_t before = 0;
  std::uint64_t value = 0;
  std::size_t undone = kNoStep;  // the call that undoes the change, or tries to
  std::size_t ended = kNoStep;   // the call that ends what has the setting, or sets it to something else
  bool denied = false;           // the program was told that the change had failed
};

// Finds the changes of a run whose former value is known.
class Changes {
 public:
  explicit Changes(const Evidence& run) {
    const std::vector<std::uint32_t>& calls = run.facts().calls;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> next;  // the mode that the next exchange of a thread answers
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      const Record& record = run.record(*call);
      if (BaseOf(record) != BaseId::ThreadExchangeStreamCaptureMode) continue;
      const Outcome outcome = OutcomeOf(record);
      if (outcome == Outcome::After) next.erase({record.pid, record.tid});  // nobody was told the mode
      if (outcome != Outcome::Succeeded) continue;
      const auto [old, last] = next.try_emplace({record.pid, record.tid}, record.argument[0]);
      if (!last) modes_[record.begin] = std::exchange(old->second, record.argument[0]);
    }
    for (std::size_t step = 0; step < calls.size(); ++step) Take(run.record(calls[step]), step);
  }
  std::vector<SettingChange> changes;

 private:
  // Process, thread or 0, context or 0, setting, and which.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, Setting, std::uint64_t>;

  // Which context is current is known after calls that the gate asks it for, and after those that choose one.
  void FollowContext(const Record& record, Effect effect) {
    std::uint64_t& current = current_[{record.pid, record.tid}];
    if (NamesCurrent(effect)) current = record.context;
    const Outcome outcome = OutcomeOf(record);
    if (outcome != Outcome::Succeeded && outcome != Outcome::After) return;
    const bool chooses = effect == Effect::SetsContext || effect == Effect::PushesContext || effect == Effect::CreatesContext;
    if (chooses) current = record.argument[0];
    if (effect == Effect::PopsContext || effect == Effect::DestroysContext) current = 0;
  }

  void Take(const Record& record, std::size_t step) {
    const Effect effect = EffectOfCall(record);
    const std::optional<Touch> touch = TouchOf(record);
    if (touch) TakeTouch(record, *touch, step);
    const Outcome outcome = OutcomeOf(record);
    if (outcome == Outcome::Refused || outcome == Outcome::Failed) return FollowContext(record, effect);
    const bool ends_contexts = effect == Effect::DestroysContext || effect == Effect::ReleasesPrimary || effect == Effect::ResetsPrimary;
    const bool ends_pool = effect == Effect::Releases && driver::EffectOf(BaseOf(record)).kind == Kind::MemoryPool;
    if (ends_contexts || ends_pool) {
      std::erase_if(open_, [&](const std::pair<Key, std::size_t>& one) {
        const bool of_context = std::get<2>(one.first) != 0;
        const bool is_pool = std::get<3>(one.first) == Setting::Pool && changes[one.second].value == record.argument[0];
        if (std::get<0>(one.first) != record.pid || !(ends_contexts ? of_context : is_pool)) return false;
        changes[one.second].ended = step;
        return true;
      });
    }
    FollowContext(record, effect);
  }

  void TakeTouch(const Record& record, Touch touch, std::size_t step) {
    const bool of_device = touch.setting == Setting::Pool;
    const bool of_thread = touch.setting == Setting::CaptureMode;
    const std::uint64_t context = of_device || of_thread ? 0 : current_[{record.pid, record.tid}];
    if (context == 0 && !of_device && !of_thread) return;
    const Key key{record.pid, of_thread ? record.tid : 0, context, touch.setting, touch.which};
    const Outcome outcome = OutcomeOf(record);
    const bool done = outcome == Outcome::Succeeded || outcome == Outcome::After;
    if (!touch.sets) {
      // A device begins with its default pool.
      if (done && BaseOf(record) == BaseId::DeviceGetDefaultMemPool) known_.try_emplace(key, touch.value);
      if (done && BaseOf(record) != BaseId::DeviceGetDefaultMemPool) known_[key] = touch.value;
      return;
    }
    std::optional<std::uint64_t> before;
    if (const auto known = known_.find(key); known != known_.end()) before = known->second;
    if (touch.setting == Setting::Peer) before = 0;
    if (of_thread && done) before = record.argument[0];
    if (const auto next = modes_.find(record.begin); of_thread && next != modes_.end()) touch.value = next->second;
    if (done) known_[key] = touch.value;
    if (Undo(key, touch.value, step) || !done || !before || *before == touch.value) return;
    open_.emplace_back(key, changes.size());
    changes.push_back({&record, step, *before, touch.value});
    changes.back().denied = outcome == Outcome::After;
  }

  // Closes the change that the call undoes, and ends those made after it. The mode that the last exchange of a thread sets is unknown; it
  // undoes the newest change.
  bool Undo(const Key& key, std::uint64_t value, std::size_t step) {
    std::size_t first = kNoStep;
    for (const auto& [one, change] : open_) {
      if (one == key && (value == kUnknown || (first == kNoStep && changes[change].before == value))) first = change;
    }
    if (first == kNoStep) return false;
    std::erase_if(open_, [&](const std::pair<Key, std::size_t>& one) {
      if (one.first != key || one.second < first) return false;
      SettingChange& change = changes[one.second];
      (one.second == first ? change.undone : change.ended) = step;
      return true;
    });
    return true;
  }

  std::vector<std::pair<Key, std::size_t>> open_;
  std::map<Key, std::uint64_t> known_;
  std::map<std::uint64_t, std::uint64_t> modes_;  // that an exchange set, by its ticket
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> current_;
};

}  // namespace

Settings::Settings(const Evidence& fault_free) {
  for (const SettingChange& change : Changes(fault_free).changes) {
    Undone& undone = undone_[SiteKey(*fault_free.journal, SiteOf(*change.record))];
    // The same call with another value is no way back: each turn of a loop chooses its own.
    const bool is_undone =
        change.undone != kNoStep && fault_free.record(fault_free.facts().calls[change.undone]).stack != change.record->stack;
    const std::size_t level = is_undone ? SharedLevel(fault_free, change.step, change.undone) : kNoLevel;
    if (level == kNoLevel) {
      undone.always = false;
      continue;
    }
    undone.level = std::max(undone.level, level);
    const std::uint32_t cycle = fault_free.record(fault_free.facts().calls[change.undone]).cycle;
    undone.in_its_cycle = undone.in_its_cycle && cycle != 0 && cycle == change.record->cycle;
  }
}

std::vector<TrialFinding> Settings::Missing(const Evidence& trial) const {
  std::vector<TrialFinding> findings;
  if (undone_.empty()) return findings;
  const std::vector<std::uint32_t>& calls = trial.facts().calls;
  const std::set<std::uint32_t> vanished = trial.facts().Vanished();
  for (const SettingChange& change : Changes(trial).changes) {
    if (change.undone != kNoStep || change.denied || vanished.count(change.record->pid) != 0) continue;
    const std::uint64_t key = SiteKey(*trial.journal, SiteOf(*change.record));
    const auto known = undone_.find(key);
    if (known == undone_.end() || !known->second.always) continue;
    const std::span<const std::uint64_t> frames = trial.journal->Stack(change.record->stack);
    const Record* seen = nullptr;  // the first call of the thread after the function had returned that is not part of a clean-up
    for (std::size_t step = change.step + 1; seen == nullptr && step < std::min(change.ended, calls.size()); ++step) {
      const Record& record = trial.record(calls[step]);
      if (record.pid != change.record->pid || record.tid != change.record->tid || record.stack == 0) continue;
      const Effect effect = EffectOfCall(record);
      if (driver::IsRelease(effect) || OnlyLooks(record, effect)) continue;
      if (known->second.level < frames.size() && !IsWithin(trial, record, frames[known->second.level])) seen = &record;
    }
    const Record* const end = known->second.in_its_cycle && change.record->cycle != 0 ? EndOfCycle(trial, *change.record) : nullptr;
    const bool lives = end != nullptr && (change.ended == kNoStep || trial.record(calls[change.ended]).begin > end->begin);
    if (lives && seen != nullptr && seen->begin > end->begin) seen = nullptr;
    if (seen == nullptr && !lives) continue;
    TrialFinding finding;
    finding.rule = Rule::SettingNotRestored;
    finding.count = 1;
    finding.where = SiteOf(*change.record);
    finding.where_key = key;
    if (seen != nullptr) {
      finding.other = SiteOf(*seen);
      finding.other_key = SiteKey(*trial.journal, finding.other);
    }
    const auto same = std::find_if(findings.begin(), findings.end(), [&](const TrialFinding& one) {
      return one.where_key == finding.where_key && one.other_key == finding.other_key;
    });
    if (same != findings.end()) {
      ++same->count;
    } else {
      findings.push_back(finding);
    }
  }
  return findings;
}

bool ChangesSettings(std::span<const Record> records) {
  return std::any_of(records.begin(), records.end(), [](const Record& record) {
    if (!IsProgramCall(record)) return false;
    const std::optional<Touch> touch = TouchOf(record);
    return touch && touch->sets;
  });
}

}  // namespace cuaudit::harness
