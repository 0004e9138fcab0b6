// SPDX-License-Identifier: MIT
#include "harness/verdict/surplus.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "faults/driver/effects.h"
#include "harness/ledger/kept_contexts.h"
#include "harness/ledger/rules.h"
#include "harness/verdict/context/restored_entries.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/host/driver_owned.h"
#include "harness/verdict/how_left.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;
using faults::RecordKind;

// Collects findings that agree in rule, kind and all places, in order of first appearance. Two colliding calls are one finding, however
// many buffers they collide in.
class Groups {
 public:
  void Add(const TrialFinding& finding) {
    const std::uint64_t acquired_key = IsProved(finding.rule) ? 0 : finding.acquired_key;
    const std::uint64_t other = OtherTellsApart(finding.rule) ? finding.other_key : 0;
    const auto [found, added] = index_.try_emplace(
        {finding.rule, finding.kind, acquired_key, finding.where_key, other, finding.refused_wait, finding.detail}, findings_.size());
    if (added) {
      findings_.push_back(finding);
    } else {
      findings_[found->second].count += finding.count;
      findings_[found->second].bytes += finding.bytes;
    }
  }
  std::vector<TrialFinding> Take() { return std::move(findings_); }

 private:
  std::map<std::tuple<Rule, Kind, std::uint64_t, std::uint64_t, std::uint64_t, bool, Details>, std::size_t> index_;
  std::vector<TrialFinding> findings_;
};

bool Take(std::uint64_t* left) {
  if (*left == 0) return false;
  --*left;
  return true;
}
// The rehearsal loses the object, too, with or without its context.
bool TakeEither(Allowance* allowance) { return Take(&allowance->live) || Take(&allowance->orphaned); }

bool HoldsUserObjects(Kind kind) { return kind == Kind::Graph || kind == Kind::ExecutableGraph || kind == Kind::UserObject; }

// The call that keeps a graph or user object alive: its release, which was refused, or under `after` the call that made it, of which the
// program was told that it had failed. The destructors of user objects that it holds then never run. Empty when there is none.
Site KeptFromDestruction(const Evidence& trial) {
  for (const Object& object : trial.ledger->objects) {
    if (HoldsUserObjects(object.kind) && object.state == State::ReleaseRefused) return object.released;
  }
  for (const std::uint32_t index : trial.own_calls()) {
    if (MakesUnownedHolder(trial.record(index))) return SiteOf(trial.record(index));
  }
  return {};
}

// One of the contexts that a process keeps, how many descriptors without a call stack the driver may hold open for those that the rehearsal
// did not keep, and what it holds for them.
struct Holder {
  const Object* context = nullptr;
  std::uint64_t room = 0;
  DriversOwn own;
};

std::map<std::uint32_t, Holder> MoreContexts(const Rehearsed& rehearsal, const Evidence& trial) {
  std::map<std::uint32_t, Holder> more;
  const std::vector<KeptContexts>& before = rehearsal.contexts();
  const std::vector<KeptContexts> after = ContextsLeft(*trial.ledger);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::size_t kept_anyway = i < before.size() ? before[i].count : 0;
    if (after[i].count <= kept_anyway) continue;
    const DriversOwn held = i < before.size() ? HeldByDriver(*rehearsal.run().ledger, before[i].pid) : DriversOwn();
    more[after[i].pid] = {after[i].context, DescriptorsOf(trial.journal->header(), after[i].count - kept_anyway),
                          HeldMore(trial.journal->header(), HeldByDriver(*trial.ledger, after[i].pid), held)};
  }
  return more;
}

// What the driver holds for a context is part of the finding of that context. Returns false when none of these is one.
bool TellUnder(const TrialFinding& context, std::vector<TrialFinding>* findings, const std::string& own) {
  for (TrialFinding& finding : *findings) {
    if (finding.kind != context.kind || finding.acquired_key != context.acquired_key) continue;
    finding.detail.push_back({Detail::HoldsOfDriver, {own}});
    return true;
  }
  return false;
}

TrialFinding FindingOf(Rule rule, const Object& object, std::uint64_t key) {
  TrialFinding finding;
  finding.rule = rule;
  finding.kind = object.kind;
  finding.count = 1;
  finding.bytes = object.bytes;
  finding.acquired = object.acquired;
  finding.acquired_key = key;
  return finding;
}

}  // namespace

bool MakesUnownedHolder(const faults::Record& call) {
  constexpr unsigned kAfter = faults::kInjected | faults::kForwarded;
  if (!IsProgramCall(call) || (call.flags & kAfter) != kAfter) return false;
  const driver::EffectRow& row = driver::EffectOf(BaseOf(call));
  return HoldsUserObjects(row.kind) && (driver::IsAcquire(row.effect) || row.effect == driver::Effect::EndsCapture);
}

Leftovers CompareObjects(const Rehearsed* rehearsal, const Evidence& trial, const JudgeOptions& options) {
  Remainder allowances(rehearsal == nullptr ? nullptr : &rehearsal->left());
  std::set<std::uint32_t> vanished;
  Site kept;
  std::map<std::uint32_t, Holder> contexts;
  if (rehearsal != nullptr) {
    contexts = MoreContexts(*rehearsal, trial);
    vanished = trial.facts().Vanished();
    kept = KeptFromDestruction(trial);
  }
  const UndestroyedContexts undestroyed_contexts(*trial.ledger);
  Remainder undestroyed(kept.record_kind == RecordKind::Empty ? nullptr : &rehearsal->freed_by_destructors());
  SiteKeys keys(*trial.journal);
  struct Left {
    const Object* object;
    std::uint64_t key;
  };
  std::vector<Left> unmatched;
  std::vector<Left> of_vanished;
  const auto Refused = [&](const Object& object, std::uint64_t key, const Site& where) {
    TrialFinding finding = FindingOf(Rule::ReleaseRefused, object, key);
    finding.where = where;
    finding.where_key = keys.Of(where);
    return finding;
  };
  // An object that ended with its context names the call that ended the context, which tells it apart from live objects.
  const auto Kept = [&](const Object& object, std::uint64_t key) {
    TrialFinding finding = FindingOf(Rule::ProcessLifetime, object, key);
    if (object.state == State::Orphaned) {
      finding.where = object.released;
      finding.where_key = keys.Of(object.released);
    }
    return finding;
  };
  const auto Relied = [&](const Object& object) {
    return object.state == State::Orphaned && (object.ended_with_peer || (object.own_context && !options.own_orphans_count));
  };
  const bool recorded = (trial.journal->header().flags.load() & faults::kRecording) != 0;
  Groups leaks;
  Groups relied;
  Groups refused;
  Groups retried;
  Groups lifetime;
  for (const Object& object : trial.ledger->objects) {
    if (object.retried.record_kind != RecordKind::Empty && object.state == State::Released) {
      TrialFinding finding = Refused(object, keys.Of(object.acquired), object.retried);
      finding.rule = Rule::RetainedForRetry;
      retried.Add(finding);
    }
    if (!IsOwnLeak(object)) continue;
    const std::uint64_t key = keys.Of(object.acquired);
    if (object.state == State::ReleaseRefused) {
      refused.Add(Refused(object, key, object.released));
      continue;
    }
    if (vanished.count(object.pid) != 0) {
      if (!IsHost(object)) of_vanished.push_back({&object, key});
      continue;
    }
    if (rehearsal == nullptr && object.library_kept) {
      lifetime.Add(FindingOf(Rule::KeptByLibrary, object, key));
      continue;
    }
    if (rehearsal == nullptr && options.nothing_may_stay && !IsHost(object) && !(recorded && WasCutOff(object, trial.facts()))) {
      TrialFinding finding = Kept(object, key);
      if (Relied(object)) {
        finding.rule = Rule::ReliedOnContext;
        relied.Add(finding);
        continue;
      }
      finding.rule = Rule::LeftAtExit;
      finding.detail = HowItStayed(object, trial.facts());
      leaks.Add(finding);
      continue;
    }
    Allowance& allowance = allowances[{object.kind, key}];
    if (rehearsal == nullptr || Take(object.state == State::Orphaned ? &allowance.orphaned : &allowance.live)) {
      lifetime.Add(Kept(object, key));
    } else {
      unmatched.push_back({&object, key});
    }
  }
  // One run may lose the object with its context and the other without. Both leave it behind, so the two counts are one allowance.
  for (const Left& left : unmatched) {
    Allowance& allowance = allowances[{left.object->kind, left.key}];
    if (TakeEither(&allowance)) {
      lifetime.Add(Kept(*left.object, left.key));
      continue;
    }
    const bool by_destructor = IsHost(*left.object) && Take(&undestroyed[{left.object->kind, left.key}]);
    const Site* const by_context = options.own_orphans_count ? nullptr : undestroyed_contexts.EndOf(*left.object);
    if (by_destructor || by_context != nullptr) {
      refused.Add(Refused(*left.object, left.key, by_destructor ? kept : *by_context));
      continue;
    }
    const auto holder = contexts.find(left.object->pid);
    if (left.object->event_or_pipe && holder != contexts.end() && Take(&holder->second.room)) {
      ++holder->second.own[Kind::FileDescriptor];
      continue;
    }
    const bool pooled =
        left.object->kind == Kind::HostMapping && rehearsal->pools().contains(CallerKey(*trial.journal, left.object->acquired));
    if (left.object->library_kept || pooled) {
      lifetime.Add(FindingOf(Rule::KeptByLibrary, *left.object, left.key));
      continue;
    }
    const bool orphaned = left.object->state == State::Orphaned;
    const bool relies = Relied(*left.object);
    TrialFinding finding = FindingOf(relies ? Rule::ReliedOnContext : orphaned ? Rule::Orphaned : Rule::Leak, *left.object, left.key);
    const bool was_declined = left.object->state == State::Live && left.object->released.record_kind == RecordKind::Call;
    if (orphaned || was_declined) {
      finding.where = left.object->released;
      finding.where_key = keys.Of(left.object->released);
    }
    if (was_declined) finding.detail = HowItAnswered(trial, left.object->released);
    (relies ? relied : leaks).Add(finding);
  }
  Groups unjudged;
  for (const Left& left : of_vanished) {
    Allowance& allowance = allowances[{left.object->kind, left.key}];
    if (TakeEither(&allowance)) {
      lifetime.Add(Kept(*left.object, left.key));
    } else {
      unjudged.Add(FindingOf(Rule::Unjudged, *left.object, left.key));
    }
  }
  Leftovers left = {leaks.Take(), refused.Take(), retried.Take(), lifetime.Take(), relied.Take(), {}, unjudged.Take()};
  for (const auto& [pid, holder] : contexts) {
    const TrialFinding context = FindingOf(Rule::KeptByLibrary, *holder.context, keys.Of(holder.context->acquired));
    const std::string own = InWords(holder.own);
    const bool told = own.empty() || TellUnder(context, &left.leaks, own) || TellUnder(context, &left.refused, own) ||
                      TellUnder(context, &left.process_lifetime, own);
    for (const auto& [kind, count] : holder.own) {
      if (told || count == 0) continue;
      TrialFinding alone;
      alone.rule = Rule::KeptByLibrary;
      alone.kind = kind;
      alone.count = count;
      left.process_lifetime.push_back(std::move(alone));
    }
  }
  left.shown = TakeShown(*trial.journal, &left.leaks);
  for (TrialFinding& kept_alive : TakeShown(*trial.journal, &left.refused)) left.shown.push_back(std::move(kept_alive));
  return left;
}

std::vector<TrialFinding> TakeShown(const faults::JournalView& journal, std::vector<TrialFinding>* findings) {
  if (!OnlyShowsHost(journal)) return {};
  const auto first = std::stable_partition(findings->begin(), findings->end(), [](const TrialFinding& finding) {
    if (finding.rule == Rule::ClosedAfterImport) return true;  // the driver's descriptor, whoever opened it
    return finding.where.record_kind != RecordKind::Host && finding.acquired.record_kind != RecordKind::Host;
  });
  std::vector<TrialFinding> shown(std::make_move_iterator(first), std::make_move_iterator(findings->end()));
  findings->erase(first, findings->end());
  for (TrialFinding& finding : shown) {
    if (finding.rule == Rule::Leak) {
      finding.rule = Rule::HostLeft;
      if (finding.kind == Kind::Mutex) finding.detail = {{Detail::MutexMemory}};
    } else if (Row(finding.rule).level == Level::Finding) {
      finding.detail = {WouldBe(finding.rule)};
      finding.rule = Rule::HostMisused;
    }
  }
  return shown;
}

namespace {

using ViolationKey = ViolationCounts::key_type;

// Entries that a trial leaves on context stacks where an entry stood that nobody had pushed (restored_entries.h). Where the call stacks do
// not tell, the trial may leave as many as the fault-free run does, and any at a place where that run pushes nothing.
class OwedPops {
 public:
  OwedPops(const Rehearsed* rehearsal, const Evidence& trial) : rehearsal_(rehearsal), trial_(&trial) {}
  Restored Of(const Violation& violation) {
    if (violation.rule != Rule::ContextStack || violation.object < 0) return Restored::No;
    if (!restored_) restored_.emplace(*trial_);
    return restored_->Of(violation.where);
  }
  // The trial does what the fault-free run does: what that run leaves there counts no further.
  void WasAllowed(const ViolationKey& key) {
    if (rehearsal_ == nullptr || std::get<Rule>(key) != Rule::ContextStack) return;
    Count();
    if (Take(&(*left_at_)[key])) --left_;
  }
  bool IsExcused(const Violation& violation, std::uint64_t where_key) {
    const Restored restored = Of(violation);
    if (restored != Restored::Perhaps) return restored == Restored::Yes;
    if (rehearsal_ == nullptr) return true;
    if (!rehearsal_->pushes().contains(where_key)) return true;
    Count();
    return Take(&left_);
  }

 private:
  // What the fault-free run leaves.
  void Count() {
    if (left_at_) return;
    left_at_.emplace(&rehearsal_->entries_left());
    for (const auto& [key, count] : rehearsal_->entries_left()) left_ += count;
  }

  const Rehearsed* rehearsal_;
  const Evidence* trial_;
  std::optional<RestoredEntries> restored_;
  std::optional<Remainder<ViolationCounts>> left_at_;
  std::uint64_t left_ = 0;
};

}  // namespace

std::vector<TrialFinding> CompareViolations(const Rehearsed* rehearsal, const Evidence& trial) {
  Remainder allowed(rehearsal == nullptr ? nullptr : &rehearsal->violations());
  const std::set<std::uint32_t> vanished = trial.facts().Vanished();  // had no chance to pop
  SiteKeys keys(*trial.journal);
  OwedPops owed(rehearsal, trial);
  std::vector<const Violation*> violations;
  for (const Violation& violation : trial.ledger->violations) {
    if (violation.rule == Rule::ContextStack && vanished.count(violation.pid) != 0) continue;
    violations.push_back(&violation);
  }
  // What the fault-free run does at the same place comes first, and there what owes no pop: nothing is excused twice.
  std::stable_partition(violations.begin(), violations.end(), [&](const Violation* one) { return owed.Of(*one) == Restored::Yes; });
  std::erase_if(violations, [&](const Violation* one) {
    const ViolationKey key{one->rule, one->kind, keys.Of(one->where), OtherTellsApart(one->rule) ? keys.Of(one->other) : 0};
    if (!Take(&allowed[key])) return false;
    owed.WasAllowed(key);
    return true;
  });
  std::erase_if(violations, [&](const Violation* one) { return owed.IsExcused(*one, keys.Of(one->where)); });
  std::sort(violations.begin(), violations.end());  // in the order of the ledger
  Groups groups;
  for (const Violation* const one : violations) {
    const Violation& violation = *one;
    TrialFinding finding;
    finding.rule = violation.rule;
    finding.kind = violation.kind;
    finding.count = 1;
    finding.where = violation.where;
    finding.where_key = keys.Of(violation.where);
    finding.other = violation.other;
    finding.other_key = keys.Of(violation.other);
    finding.bytes = violation.bytes;
    finding.refused_wait = violation.refused_wait;
    if (violation.object >= 0) {
      const Object& object = trial.ledger->objects[static_cast<std::size_t>(violation.object)];
      if (!IsProved(violation.rule)) finding.bytes = object.bytes;
      finding.acquired = object.acquired;
      finding.acquired_key = keys.Of(object.acquired);
    }
    groups.Add(finding);
  }
  return groups.Take();
}

}  // namespace cuaudit::harness
