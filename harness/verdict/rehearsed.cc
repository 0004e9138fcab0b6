// SPDX-License-Identifier: MIT
#include "harness/verdict/rehearsed.h"

#include "faults/driver/effects.h"
#include "harness/ledger/arguments.h"
#include "harness/ledger/rules.h"
#include "harness/verdict/context/counted_places.h"
#include "harness/verdict/context/put_back.h"
#include "harness/verdict/context/restored_entries.h"
#include "harness/verdict/context/restored_settings.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/host/closed_descriptors.h"
#include "harness/verdict/host/driver_owned.h"

namespace cuaudit::harness {

using driver::BaseId;
using driver::Effect;
using driver::Kind;
using faults::MarkKind;
using faults::Record;
using faults::RecordKind;

namespace {

// cuMemFree, cuMemFreeAsync and cuMemFreeHost answer SUCCESS to null, as free() does. README.md has the table.
bool MayBeNull(BaseId base) { return base == BaseId::MemFree || base == BaseId::MemFreeAsync || base == BaseId::MemFreeHost; }

}  // namespace

bool ReleasesNull(const Record& record) {
  const driver::EffectRow& row = driver::EffectOf(BaseOf(record));
  const bool release = row.effect == Effect::Releases || row.effect == Effect::ReleasesCounted || row.effect == Effect::ReleasesRange ||
                       row.effect == Effect::DestroysContext;
  if (!release || row.object < 0 || ArgumentAt(record, row.object) != 0) return false;
  if (driver::FamilyOf(row.kind) == driver::Family::Callback || MayBeNull(row.base))
    return false;  // the handle of a callback is a number that the driver chooses
  const Answer answer = AnswerOf(record);
  return answer == Answer::Succeeded || answer == Answer::Failed || answer == Answer::Unfinished;
}

bool IsOwed(const Object& object) { return !object.driver_owned && driver::DiesWithOf(object.kind) != driver::DiesWith::Parent; }

bool IsOwnLeak(const Object& object) {
  return object.state != State::Released && IsOwed(object) && !object.part_of_other &&
         (object.kind != Kind::ContextStackEntry || object.state == State::ReleaseRefused);
}

bool IsLoneDriverObject(const Object& object) {
  return object.acquired.record_kind == RecordKind::Call && driver::DiesWithOf(object.kind) != driver::DiesWith::Parent;
}

bool IsHeldAt(const Object& object, std::uint64_t ticket) {
  const bool gone = object.state == State::Released || object.state == State::Orphaned;
  return object.acquired.begin < ticket && (!gone || object.released.begin > ticket);
}

std::vector<KeptContexts> ContextsLeft(const Ledger& ledger) {
  return KeptContextsOf(ledger, [](const Object& object) { return object.state == State::Live || object.state == State::ReleaseRefused; });
}

Rehearsed::Rehearsed(const Evidence& run) : run_(run) {
  SiteKeys keys(*run.journal);
  for (const Object& object : run.ledger->objects) {
    if (object.acquired.record_kind == RecordKind::Call && object.state != State::Released)
      ++driver_objects_left_[{object.kind, keys.Of(object.acquired)}];
    if (!IsOwnLeak(object)) continue;
    Allowance& allowance = left_[{object.kind, keys.Of(object.acquired)}];
    ++(object.state == State::Orphaned ? allowance.orphaned : allowance.live);
    if (object.kind == Kind::HostMapping) pools_.insert(CallerKey(*run.journal, object.acquired));
  }
  for (const Violation& violation : run.ledger->violations)
    ++violations_[{violation.rule, violation.kind, keys.Of(violation.where),
                   OtherCallOf(violation.rule).tells_apart ? keys.Of(violation.other) : 0}];
}

const PlaceCounts& Rehearsed::freed_by_destructors() const {
  if (freed_by_destructors_.has_value()) return *freed_by_destructors_;
  PlaceCounts& counts = freed_by_destructors_.emplace();
  SiteKeys keys(*run_.journal);
  for (const Object& object : run_.ledger->objects) {
    if (!IsHost(object) || object.driver_owned || object.state != State::Released || object.released.record_kind != RecordKind::Host)
      continue;
    if (CalledByDriver(*run_.journal, object.released.stack)) ++counts[{object.kind, keys.Of(object.acquired)}];
  }
  return counts;
}

const std::map<std::pair<driver::Kind, std::uint64_t>, Site>& Rehearsed::releases() const {
  if (releases_.has_value()) return *releases_;
  auto& releases = releases_.emplace();
  SiteKeys keys(*run_.journal);
  for (const Object& object : run_.ledger->objects) {
    if (object.state == State::Released && object.released.record_kind != RecordKind::Empty)
      releases.try_emplace({object.kind, keys.Of(object.acquired)}, object.released);
  }
  return releases;
}

const std::vector<KeptContexts>& Rehearsed::contexts() const {
  if (!contexts_.has_value()) contexts_ = ContextsLeft(*run_.ledger);
  return *contexts_;
}

const CountedPlaces& Rehearsed::counted() const {
  if (counted_ == nullptr) counted_ = std::make_shared<const CountedPlaces>(run_);
  return *counted_;
}

const RestoredSettings& Rehearsed::restored_settings() const {
  if (restored_settings_ == nullptr) restored_settings_ = std::make_shared<const RestoredSettings>(run_);
  return *restored_settings_;
}

Site Rehearsed::put_back_at(const TrialFinding& finding) const {
  return finding.rule == Rule::SettingNotRestored ? restored_settings().BackAt(finding.where_key) : Site();
}

const PutBack& Rehearsed::put_back() const {
  if (put_back_ == nullptr) put_back_ = std::make_shared<const PutBack>(run_);
  return *put_back_;
}

const std::set<std::uint64_t>& Rehearsed::null_releases() const {
  if (null_releases_.has_value()) return *null_releases_;
  null_releases_.emplace();
  for (const std::uint32_t index : run_.facts().calls) {
    if (ReleasesNull(run_.record(index))) null_releases_->insert(CallerKey(*run_.journal, SiteOf(run_.record(index))));
  }
  return *null_releases_;
}

const UsualCloses& Rehearsed::closes() const {
  if (closes_ == nullptr) closes_ = std::make_shared<const UsualCloses>(UsualClosesOf(run_));
  return *closes_;
}

const std::set<std::uint64_t>& Rehearsed::pushes() const {
  if (pushes_.has_value()) return *pushes_;
  auto& pushes = pushes_.emplace();
  for (const std::uint32_t index : run_.facts().calls) {
    const Record& call = run_.record(index);
    if (driver::EffectOf(BaseOf(call)).effect == driver::Effect::PushesContext) pushes.insert(SiteKey(*run_.journal, SiteOf(call)));
  }
  return pushes;
}

const ViolationCounts& Rehearsed::entries_left() const {
  if (entries_left_.has_value()) return *entries_left_;
  ViolationCounts& left = entries_left_.emplace();
  const RestoredEntries restored(run_);
  SiteKeys keys(*run_.journal);
  for (const Violation& one : run_.ledger->violations) {
    if (one.rule == Rule::ContextStack && restored.Of(one.where) == Restored::Perhaps)
      ++left[{one.rule, one.kind, keys.Of(one.where), keys.Of(one.other)}];
  }
  return left;
}

const std::vector<Site>& Rehearsed::call_stacks() const {
  if (call_stacks_.has_value()) return *call_stacks_;
  std::vector<Site>& stacks = call_stacks_.emplace();
  std::set<std::uint32_t> known;
  for (const std::uint32_t index : run_.facts().calls) {
    if (const Record& call = run_.record(index); known.insert(call.stack).second) stacks.push_back(SiteOf(call));
  }
  return stacks;
}

const RehearsedCycle& Rehearsed::cycle(std::uint32_t number) const {
  const auto [found, fresh] = cycles_.try_emplace(number);
  RehearsedCycle& cycle = found->second;
  if (!fresh) return cycle;
  for (const std::uint32_t index : run_.facts().marks) {
    const Record& mark = run_.record(index);
    if (mark.cycle != number) continue;
    if (IsMark(mark, MarkKind::CycleBegin)) cycle.begun = true;
    if (IsMark(mark, MarkKind::CycleEnd)) cycle.end = mark.begin;
    if (IsMark(mark, MarkKind::Report) && mark.argument[0] != 0) cycle.said = mark.argument[0];
  }
  for (const std::uint32_t index : run_.facts().calls) {
    const Record& call = run_.record(index);
    if (call.cycle != number || call.end == 0) continue;
    if (call.result == CUDA_SUCCESS) {
      ++cycle.successes[BaseOf(call)];
    } else {
      ++cycle.failures[SiteKey(*run_.journal, SiteOf(call))];
    }
  }
  SiteKeys keys(*run_.journal);
  for (const Object& object : run_.ledger->objects) {
    if (cycle.end != 0 && IsLoneDriverObject(object) && IsHeldAt(object, cycle.end)) ++cycle.held[{object.kind, keys.Of(object.acquired)}];
  }
  return cycle;
}

}  // namespace cuaudit::harness
