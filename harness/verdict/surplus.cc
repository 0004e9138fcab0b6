// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "harness/ledger/kept_contexts.h"
#include "harness/ledger/rules.h"
#include "harness/verdict/context/restored_entries.h"
#include "harness/verdict/evidence/finding.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/host/driver_owned.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;
using faults::RecordKind;

bool Take(std::uint64_t* left) {
  if (*left == 0) return false;
  --*left;
  return true;
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

// What is left at the end of one trial. What the rehearsal leaves at the same place is allowed; anything more is a leak, unless something
// explains it.
class LeftObjects {
 public:
  LeftObjects(const Rehearsed* rehearsal, const Evidence& trial, const JudgeOptions& options)
      : rehearsal_(rehearsal),
        trial_(trial),
        options_(options),
        allowances_(rehearsal == nullptr ? nullptr : &rehearsal->left()),
        kept_alive_by_(rehearsal == nullptr ? Site{} : KeptFromDestruction(trial)),
        undestroyed_(kept_alive_by_.record_kind == RecordKind::Empty ? nullptr : &rehearsal->freed_by_destructors()),
        undestroyed_contexts_(*trial.ledger),
        kept_foundations_(*trial.ledger) {
    if (rehearsal == nullptr) return;
    contexts_ = MoreContexts(*rehearsal, trial);
    vanished_ = trial.facts().Vanished();
  }

  Leftovers Compare() {
    for (const Object& object : trial_.ledger->objects) {
      NoteRetry(object);
      if (IsOwnLeak(object)) Look({&object, SiteKey(*trial_.journal, object.acquired)});
    }
    // One run may lose the object with its context and the other without. Both leave it behind, so the two counts are one allowance.
    for (const Left& left : unmatched_) {
      if (LeavesAsMany(left) || IsRefused(left) || IsOfDriver(left) || IsKeptByLibrary(left) || StandsIn(left)) continue;
      AddLeak(*left.object);
    }
    for (const Left& left : of_vanished_) {
      if (!LeavesAsMany(left)) unjudged_.Add(Of(Rule::Unjudged, *left.object));
    }
    Leftovers left = {leaks_.Take(), refused_.Take(), retried_.Take(), lifetime_.Take(), relied_.Take(), {}, unjudged_.Take()};
    TellWhatContextsHold(&left);
    left.shown = TakeShown(*trial_.journal, &left.leaks);
    Append(&left.shown, TakeShown(*trial_.journal, &left.refused));
    return left;
  }

 private:
  struct Left {
    const Object* object;
    std::uint64_t key;
  };

  void NoteRetry(const Object& object) {
    if (object.retried.record_kind == RecordKind::Empty || object.state != State::Released) return;
    TrialFinding finding = Refused(object, object.retried);
    finding.rule = Rule::RetainedForRetry;
    retried_.Add(finding);
  }

  // Tells what the object itself shows. The rest waits, because all objects of a place share its allowance.
  void Look(const Left& left) {
    const Object& object = *left.object;
    if (object.state == State::ReleaseRefused) {
      refused_.Add(Refused(object, object.released));
    } else if (vanished_.count(object.pid) != 0) {
      if (!IsHost(object)) of_vanished_.push_back(left);
    } else if (rehearsal_ == nullptr) {
      TellAlone(object);
    } else if (Allowance& allowance = AllowanceOf(left); Take(object.state == State::Orphaned ? &allowance.orphaned : &allowance.live)) {
      lifetime_.Add(AsItEnded(object));
    } else {
      unmatched_.push_back(left);
    }
  }

  // Without a rehearsal.
  void TellAlone(const Object& object) {
    const bool recorded = (trial_.journal->header().flags.load() & faults::kRecording) != 0;
    TrialFinding finding = AsItEnded(object);
    if (object.library_kept) {
      lifetime_.Add(Of(Rule::KeptByLibrary, object));
    } else if (!options_.nothing_may_stay || IsHost(object) || (recorded && WasCutOff(object, trial_.facts()))) {
      lifetime_.Add(finding);
    } else if (Relied(object)) {
      finding.rule = Rule::ReliedOnContext;
      relied_.Add(finding);
    } else {
      finding.rule = Rule::LeftAtExit;
      finding.detail = HowItStayed(object, trial_.facts());
      leaks_.Add(finding);
    }
  }

  // The rehearsal leaves it, too, with or without its context.
  bool LeavesAsMany(const Left& left) {
    Allowance& allowance = AllowanceOf(left);
    if (!Take(&allowance.live) && !Take(&allowance.orphaned)) return false;
    lifetime_.Add(AsItEnded(*left.object));
    return true;
  }

  // A fallback for what the rehearsal keeps: made after the fault where that run acquires nothing, by a process that was refused the other.
  bool StandsIn(const Left& left) {
    const Object& object = *left.object;
    const faults::Record* const fault = trial_.first_hit();
    if (IsHost(object) || fault == nullptr || fault->pid != object.pid || object.acquired.begin < fault->begin) return false;
    const std::pair place(object.kind, left.key);
    if (rehearsal_->left().contains(place) || rehearsal_->releases().contains(place)) return false;
    if (!refused_places_) refused_places_ = RefusedPlaces(trial_, fault->pid);
    for (const auto& [kept, unused] : rehearsal_->left()) {
      if (driver::FamilyOf(kept.first) != driver::FamilyOf(object.kind)) continue;
      if (!refused_places_->contains(kept.second) || !Take(&allowances_[kept].live)) continue;
      lifetime_.Add(AsItEnded(object));
      return true;
    }
    return false;
  }

  // A destructor that never ran would have released it, or a context whose destruction was refused would have taken it along, or something
  // on it could not be released, or the CUDA runtime, which was asked to release it, came no further than a call that it makes first.
  bool IsRefused(const Left& left) {
    const Object& object = *left.object;
    const Site* by = IsHost(object) && Take(&undestroyed_[{object.kind, left.key}]) ? &kept_alive_by_ : nullptr;
    if (by == nullptr && !options_.own_orphans_count) by = undestroyed_contexts_.EndOf(object);
    if (by == nullptr) by = kept_foundations_.HeldBy(object);
    const auto in_runtime = by != nullptr ? CutShort::node_type() : TakeCutShort(left);
    if (by == nullptr && in_runtime.empty()) return false;
    refused_.Add(Refused(object, by != nullptr ? *by : in_runtime.mapped()));
    return true;
  }

  CutShort::node_type TakeCutShort(const Left& left) {
    if (rehearsal_ == nullptr) return {};
    const auto release = rehearsal_->releases().find({left.object->kind, left.key});
    if (release == rehearsal_->releases().end()) return {};
    const std::uint64_t key = RuntimeCallKey(*rehearsal_->run().journal, release->second);
    if (key == 0) return {};
    if (!cut_short_) cut_short_ = CutShortIn(trial_);
    return cut_short_->extract(key);
  }

  // The driver holds the descriptor open for a context that the process keeps.
  bool IsOfDriver(const Left& left) {
    const auto holder = contexts_.find(left.object->pid);
    if (!left.object->event_or_pipe || holder == contexts_.end() || !Take(&holder->second.room)) return false;
    ++holder->second.own[Kind::FileDescriptor];
    return true;
  }

  bool IsKeptByLibrary(const Left& left) {
    const bool pooled =
        left.object->kind == Kind::HostMapping && rehearsal_->pools().contains(CallerKey(*trial_.journal, left.object->acquired));
    if (!left.object->library_kept && !pooled) return false;
    lifetime_.Add(Of(Rule::KeptByLibrary, *left.object));
    return true;
  }

  void AddLeak(const Object& object) {
    const bool orphaned = object.state == State::Orphaned;
    const bool relies = Relied(object);
    TrialFinding finding = Of(relies ? Rule::ReliedOnContext : orphaned ? Rule::Orphaned : Rule::Leak, object);
    const Site& declined = orphaned ? object.declined : object.released;
    const bool was_declined = declined.record_kind == RecordKind::Call;
    if (orphaned || was_declined) SetWhere(object.released, *trial_.journal, &finding);
    if (orphaned && was_declined) SetOther(declined, *trial_.journal, &finding);
    if (was_declined) finding.detail = HowItAnswered(trial_, declined);
    (relies ? relied_ : leaks_).Add(finding);
  }

  // What the driver holds for a context stands beside that context where it is told, and by itself elsewhere.
  void TellWhatContextsHold(Leftovers* left) {
    for (const auto& [pid, holder] : contexts_) {
      const TrialFinding context = Of(Rule::KeptByLibrary, *holder.context);
      const std::string own = InWords(holder.own);
      const bool told = own.empty() || TellUnder(context, &left->leaks, own) || TellUnder(context, &left->refused, own) ||
                        TellUnder(context, &left->process_lifetime, own);
      for (const auto& [kind, count] : holder.own) {
        if (told || count == 0) continue;
        left->process_lifetime.push_back({.rule = Rule::KeptByLibrary, .kind = kind, .count = count});
      }
    }
  }

  Allowance& AllowanceOf(const Left& left) { return allowances_[{left.object->kind, left.key}]; }
  bool Relied(const Object& object) const {
    return object.state == State::Orphaned && (object.ended_with_peer || (object.own_context && !options_.own_orphans_count));
  }
  TrialFinding Of(Rule rule, const Object& object) const { return FindingOf(rule, object, *trial_.journal); }
  TrialFinding Refused(const Object& object, const Site& where) const {
    TrialFinding finding = Of(Rule::ReleaseRefused, object);
    SetWhere(where, *trial_.journal, &finding);
    return finding;
  }
  // An object that ended with its context names the call that ended the context, which tells it apart from live objects.
  TrialFinding AsItEnded(const Object& object) const {
    TrialFinding finding = Of(Rule::ProcessLifetime, object);
    if (object.state == State::Orphaned) SetWhere(object.released, *trial_.journal, &finding);
    return finding;
  }

  const Rehearsed* rehearsal_;
  const Evidence& trial_;
  const JudgeOptions& options_;
  Remainder<Allowances> allowances_;
  std::map<std::uint32_t, Holder> contexts_;
  std::set<std::uint32_t> vanished_;
  Site kept_alive_by_;
  Remainder<PlaceCounts> undestroyed_;
  UndestroyedContexts undestroyed_contexts_;
  KeptFoundations kept_foundations_;
  std::optional<CutShort> cut_short_;  // made when it is first asked for, as
  std::optional<std::set<std::uint64_t>> refused_places_;
  std::vector<Left> unmatched_;    // more than the rehearsal leaves in that state
  std::vector<Left> of_vanished_;  // of processes without an end
  TrialGroups leaks_;
  TrialGroups relied_;
  TrialGroups refused_;
  TrialGroups retried_;
  TrialGroups lifetime_;
  TrialGroups unjudged_;
};

}  // namespace

Leftovers CompareObjects(const Rehearsed* rehearsal, const Evidence& trial, const JudgeOptions& options) {
  return LeftObjects(rehearsal, trial, options).Compare();
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
  OwedPops owed(rehearsal, trial);
  std::vector<const Violation*> violations;
  for (const Violation& violation : trial.ledger->violations) {
    if (violation.rule == Rule::ContextStack && vanished.count(violation.pid) != 0) continue;
    violations.push_back(&violation);
  }
  // What the fault-free run does at the same place comes first, and there what owes no pop: nothing is excused twice.
  std::stable_partition(violations.begin(), violations.end(), [&](const Violation* one) { return owed.Of(*one) == Restored::Yes; });
  std::erase_if(violations, [&](const Violation* one) {
    const ViolationKey key{one->rule, one->kind, SiteKey(*trial.journal, one->where),
                           OtherCallOf(one->rule).tells_apart ? SiteKey(*trial.journal, one->other) : 0};
    if (!Take(&allowed[key])) return false;
    owed.WasAllowed(key);
    return true;
  });
  std::erase_if(violations, [&](const Violation* one) { return owed.IsExcused(*one, SiteKey(*trial.journal, one->where)); });
  std::sort(violations.begin(), violations.end());  // in the order of the ledger
  TrialGroups groups;
  for (const Violation* const one : violations) {
    TrialFinding finding = FindingAt(one->rule, one->where, *trial.journal, {}, one->kind);
    SetOther(one->other, *trial.journal, &finding);
    finding.bytes = one->bytes;
    finding.refused_wait = one->refused_wait;
    finding.believed = one->believed;
    if (one->object >= 0) {
      const Object& object = trial.ledger->objects[static_cast<std::size_t>(one->object)];
      if (!IsProved(one->rule)) finding.bytes = object.bytes;
      SetAcquired(object.acquired, *trial.journal, &finding);
    }
    groups.Add(finding);
  }
  return groups.Take();
}

}  // namespace cuaudit::harness
