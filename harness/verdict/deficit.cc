// SPDX-License-Identifier: MIT
#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "faults/driver/result.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/context/counted_places.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/host/closed_descriptors.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {

bool ResetsPrimary(const faults::Record& record) { return driver::EffectOf(BaseOf(record)).effect == driver::Effect::ResetsPrimary; }

namespace {
using driver::Effect;
using driver::Kind;
using faults::Record;
using faults::RecordKind;

// One finding for each rule, kind and place.
void Merge(TrialFinding finding, std::vector<TrialFinding>* findings) {
  const auto same = std::find_if(findings->begin(), findings->end(), [&](const TrialFinding& one) {
    return one.rule == finding.rule && one.kind == finding.kind && one.where_key == finding.where_key && one.detail == finding.detail &&
           one.acquired_key == finding.acquired_key;
  });
  if (same != findings->end()) {
    same->count += finding.count;
  } else {
    findings->push_back(std::move(finding));
  }
}

// The ledger's violations about a counted thing of which nothing was left to give back.
bool SaysNothingLeft(const TrialFinding& finding, Kind kind) {
  if (kind == Kind::PeerAccess) return finding.kind == kind && finding.rule == Rule::DoubleRelease;
  if (kind == Kind::PrimaryContext) return finding.rule == Rule::OverReleasedPrimary;
  return finding.rule == Rule::ContextStack && finding.acquired.record_kind == RecordKind::Empty;
}

// True when both calls give back the same: a reference of one device's context, an entry of one thread's stack, or one peer access.
bool GiveTheSame(const Evidence& run, Kind kind, const Site& one, const Site& other) {
  const Record* const first = run.call_at(one.begin);
  const Record* const second = run.call_at(other.begin);
  if (first == nullptr || second == nullptr || first->pid != second->pid) return false;
  if (kind == Kind::PeerAccess) return first->context == second->context && first->argument[0] == second->argument[0];
  return kind == Kind::PrimaryContext ? first->argument[0] == second->argument[0] : first->tid == second->tid;
}

using Violations = std::vector<TrialFinding>;

// The ledger's violation that shows the same excess, at the same call where there is one.
Violations::iterator SameExcess(const Evidence& run, const Excess& excess, Violations* violations) {
  std::set<std::uint64_t> places;  // of the ledger's violations about the same thing
  for (const Violation& one : run.ledger->violations) {
    if (one.kind == excess.kind && GiveTheSame(run, excess.kind, one.where, excess.site)) places.insert(SiteKey(*run.journal, one.where));
  }
  const auto same = [&](const TrialFinding& one) { return SaysNothingLeft(one, excess.kind) && places.count(one.where_key) != 0; };
  const std::uint64_t here = SiteKey(*run.journal, excess.site);
  const auto exact =
      std::find_if(violations->begin(), violations->end(), [&](const TrialFinding& one) { return one.where_key == here && same(one); });
  return exact != violations->end() ? exact : std::find_if(violations->begin(), violations->end(), same);
}

bool ReleasesPrimaryOf(const Record& record, const Record& first) {
  return driver::EffectOf(BaseOf(record)).effect == Effect::ReleasesPrimary && record.pid == first.pid &&
         record.argument[0] == first.argument[0] && record.begin >= first.begin && Releases(AnswerOf(record));
}

bool IsHeldAfter(const Object& object, const Record& release) {
  if (object.kind != Kind::PrimaryContext || object.pid != release.pid || object.handle != release.argument[0]) return false;
  return object.acquired.begin < release.begin && (object.state != State::Released || object.released.begin > release.begin);
}

// The first release at the excess or after it that left no reference to the context; null for none.
const Record* EndedBy(const Evidence& trial, const Record& excess) {
  const std::vector<Object>& objects = trial.ledger->objects;
  for (const std::uint32_t call : trial.own_calls()) {
    const Record& record = trial.record(call);
    if (!ReleasesPrimaryOf(record, excess)) continue;
    if (std::none_of(objects.begin(), objects.end(), [&](const Object& one) { return IsHeldAfter(one, record); })) return &record;
  }
  return nullptr;
}

// True when the excess let a context end early, and the program used what that had held. The ledger blames who used it, and that owner did
// nothing wrong. When the context ends again later, its user has retained it since, and knows.
bool DropMissed(const Evidence& trial, const Excess& excess, Violations* violations) {
  const Record* const first = excess.kind == Kind::PrimaryContext && !excess.declined ? trial.call_at(excess.site.begin) : nullptr;
  const Record* const end = first == nullptr ? nullptr : EndedBy(trial, *first);
  if (end == nullptr) return false;
  bool dropped = false;
  for (const Violation& missed : trial.ledger->violations) {
    if (missed.rule != Rule::UseAfterRelease || missed.other.begin != end->begin) continue;
    const std::uint64_t acquired = SiteKey(*trial.journal, trial.ledger->objects[static_cast<std::size_t>(missed.object)].acquired);
    const std::uint64_t where = SiteKey(*trial.journal, missed.where);
    const auto same = std::find_if(violations->begin(), violations->end(), [&](const TrialFinding& one) {
      return one.rule == missed.rule && one.kind == missed.kind && one.where_key == where && one.acquired_key == acquired;
    });
    if (same == violations->end()) continue;
    dropped = true;
    if (--same->count == 0) violations->erase(same);
  }
  return dropped;
}

void AddCounted(const Rehearsed& rehearsal, const Evidence& trial, std::vector<TrialFinding>* violations) {
  for (const Excess& excess : rehearsal.counted().Beyond(trial)) {
    TrialFinding finding = FindingAt(Rule::Deficit, excess.site, *trial.journal, {}, excess.kind);
    if (excess.declined) finding.detail = {{Detail::NothingToTake}};
    if (DropMissed(trial, excess, violations)) finding.detail = {{Detail::EndedTooEarly}};
    for (const Object& object : trial.ledger->objects) {
      if (excess.one_of_several || object.kind != excess.kind || object.released.begin != excess.site.begin ||
          object.acquired.record_kind != RecordKind::Call)
        continue;
      SetAcquired(object.acquired, *trial.journal, &finding);
    }
    const auto later = SameExcess(trial, excess, violations);
    // The ledger has already reported the right call, as it does without a fault.
    if (later != violations->end() && later->where_key == finding.where_key && excess.kind != Kind::ContextStackEntry) continue;
    if (later != violations->end() && --later->count == 0) violations->erase(later);
    Merge(std::move(finding), violations);
  }
}

// A clean-up that destroys without looking does so in the fault-free run, too. Its caller does not matter.
void AddNulls(const Rehearsed& rehearsal, const Evidence& trial, std::vector<TrialFinding>* violations) {
  for (const std::uint32_t index : trial.own_calls()) {
    const Record& record = trial.record(index);
    if (!ReleasesNull(record)) continue;
    const Site site = SiteOf(record);
    if (rehearsal.null_releases().contains(CallerKey(*trial.journal, site))) continue;
    Merge(FindingAt(Rule::NullReleased, site, *trial.journal, {}, driver::EffectOf(BaseOf(record)).kind), violations);
  }
}

// The use or release of an object that a reset of its primary context had ended.
bool MissesWhatItEnded(const Violation& violation, const Record& reset) {
  return violation.rule == Rule::UseAfterRelease && violation.pid == reset.pid && violation.other.begin == reset.begin;
}

// A reset is the only way back from an error that ends a context, and nobody can release anything in such a context. Not every record
// says in which context it was, so this is said only where the process has one context, and of an error since its last reset.
bool EndsLostContext(const Evidence& trial, const Record& reset) {
  for (const Object& object : trial.ledger->objects) {
    const bool another = object.kind == Kind::PrimaryContext && object.handle != reset.argument[0];
    if (another || object.kind == Kind::Context || object.kind == Kind::GreenContext) return false;
  }
  std::uint64_t lost = 0;
  std::uint64_t ended = 0;
  for (const std::uint32_t call : trial.own_calls()) {
    const Record& record = trial.record(call);
    if (record.pid != reset.pid || record.begin >= reset.begin) continue;
    if (driver::IsSticky(static_cast<CUresult>(record.result))) lost = std::max(lost, record.begin);
    if (ResetsPrimary(record) && record.result == CUDA_SUCCESS) ended = std::max(ended, record.begin);
  }
  return lost > ended;
}

bool IsRelease(const Site& site) { return driver::IsRelease(driver::EffectOf(BaseOf(site)).effect); }

// The ledger blames who still uses the objects. A device that the fault-free run resets, too, is the program's to reset.
void AddResets(const Rehearsed& rehearsal, const Evidence& trial, std::vector<TrialFinding>* violations) {
  for (const std::uint32_t index : trial.own_calls()) {
    const Record& reset = trial.record(index);
    if (!ResetsPrimary(reset)) continue;
    const std::vector<Violation>& all = trial.ledger->violations;
    const auto missed = std::count_if(all.begin(), all.end(), [&](const Violation& one) { return MissesWhatItEnded(one, reset); });
    const std::span<const std::uint32_t> before = rehearsal.run().own_calls();
    const bool usual = std::any_of(before.begin(), before.end(), [&](std::uint32_t call) {
      const Record& record = rehearsal.run().record(call);
      return ResetsPrimary(record) && record.argument[0] == reset.argument[0];
    });
    if (missed == 0 || usual) continue;
    TrialFinding finding = FindingAt(Rule::Deficit, SiteOf(reset), *trial.journal, {{Detail::EndedByReset}}, Kind::PrimaryContext);
    const bool lost = EndsLostContext(trial, reset);
    std::erase_if(*violations, [&](const TrialFinding& one) {
      return one.rule == Rule::UseAfterRelease && one.other_key == finding.where_key && (!lost || IsRelease(one.where));
    });
    if (!lost) Merge(std::move(finding), violations);
  }
}

}  // namespace

void DropTaken(const Evidence& trial, const std::vector<TrialFinding>& violations, std::vector<TrialFinding>* leaks) {
  for (const TrialFinding& taken : violations) {
    const Record* const reset = taken.rule == Rule::Deficit ? trial.call_at(taken.where.begin) : nullptr;
    if (reset == nullptr || !ResetsPrimary(*reset)) continue;
    std::set<std::int64_t> missed;
    for (const Violation& one : trial.ledger->violations) {
      if (MissesWhatItEnded(one, *reset)) missed.insert(one.object);
    }
    for (const std::int64_t object : missed) {
      const std::uint64_t key = SiteKey(*trial.journal, trial.ledger->objects[static_cast<std::size_t>(object)].acquired);
      const auto same = std::find_if(leaks->begin(), leaks->end(), [&](const TrialFinding& one) {
        return one.rule == Rule::Orphaned && one.acquired_key == key && one.where_key == taken.where_key;
      });
      if (same == leaks->end()) continue;
      same->bytes -= trial.ledger->objects[static_cast<std::size_t>(object)].bytes;
      if (--same->count == 0) leaks->erase(same);
    }
  }
}

std::vector<TrialFinding> TakeLost(const Evidence& trial, std::vector<TrialFinding>* leaks) {
  return TakeIf(leaks, [&](const TrialFinding& one) {
    const Record* const end = one.rule == Rule::Orphaned ? trial.call_at(one.where.begin) : nullptr;
    if (end == nullptr || !EndsLostContext(trial, *end)) return false;
    if (ResetsPrimary(*end)) return true;
    if (driver::EffectOf(BaseOf(*end)).effect != Effect::ReleasesPrimary) return false;
    // A reset that was refused leaves the end of the context as the only way.
    return std::any_of(trial.own_calls().begin(), trial.own_calls().end(), [&](std::uint32_t call) {
      const Record& reset = trial.record(call);
      const bool refused = ResetsPrimary(reset) && reset.result != CUDA_SUCCESS && reset.argument[0] == end->argument[0];
      return refused && reset.pid == end->pid && reset.begin < end->begin && EndsLostContext(trial, reset);
    });
  });
}

void AddDeficits(const Rehearsed& rehearsal, const Evidence& trial, std::vector<TrialFinding>* violations) {
  AddCounted(rehearsal, trial, violations);
  AddNulls(rehearsal, trial, violations);
  AddResets(rehearsal, trial, violations);
  if (trial.facts().of_host == 0 || !trial.saw_host() || !rehearsal.run().saw_host()) return;
  for (TrialFinding& one : ClosedByWrongOwner(rehearsal.closes(), trial)) Merge(std::move(one), violations);
}

bool MayGiveTooMuch(const Evidence& run) {
  const std::vector<std::uint32_t>& calls = run.facts().calls;
  return GivesMoreThanItTakes(run) || std::any_of(calls.begin(), calls.end(), [&](std::uint32_t call) {
           return ReleasesNull(run.record(call)) || ResetsPrimary(run.record(call));
         });
}

}  // namespace cuaudit::harness
