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

CycleMarks MarksOf(const Evidence& run, std::uint32_t cycle) {
  CycleMarks marks;
  for (const std::uint32_t index : run.own_marks()) {
    const Record& mark = run.record(index);
    if (mark.cycle != cycle) continue;
    if (IsMark(mark, MarkKind::CycleBegin)) marks.begun = true;
    if (IsMark(mark, MarkKind::CycleEnd)) marks.end = mark.begin;
    if (IsMark(mark, MarkKind::Report) && mark.argument[0] != 0) marks.said = mark.argument[0];
  }
  return marks;
}

Rehearsed::Rehearsed(const Evidence& run) : run_(run), contexts_(ContextsLeft(*run.ledger)) {
  for (const Object& object : run.ledger->objects) {
    const Place place(object.kind, SiteKey(*run.journal, object.acquired));
    if (object.state == State::Released && object.released.record_kind != RecordKind::Empty) releases_.try_emplace(place, object.released);
    if (object.acquired.record_kind == RecordKind::Call && object.state != State::Released) ++driver_objects_left_[place];
    if (!IsOwnLeak(object)) continue;
    Allowance& allowance = left_[place];
    ++(object.state == State::Orphaned ? allowance.orphaned : allowance.live);
    if (object.kind == Kind::HostMapping) pools_.insert(CallerKey(*run.journal, object.acquired));
  }
  for (const Violation& violation : run.ledger->violations)
    ++violations_[{violation.rule, violation.kind, SiteKey(*run.journal, violation.where),
                   OtherCallOf(violation.rule).tells_apart ? SiteKey(*run.journal, violation.other) : 0}];
  std::set<std::uint32_t> known;
  for (const std::uint32_t index : run.facts().calls) {
    const Record& call = run.record(index);
    if (known.insert(call.stack).second) call_stacks_.push_back(SiteOf(call));
    if (ReleasesNull(call)) null_releases_.insert(CallerKey(*run.journal, SiteOf(call)));
    if (driver::EffectOf(BaseOf(call)).effect == Effect::PushesContext) pushes_.insert(SiteKey(*run.journal, SiteOf(call)));
  }
}

const PlaceCounts& Rehearsed::freed_by_destructors() const {
  if (freed_by_destructors_.has_value()) return *freed_by_destructors_;
  PlaceCounts& counts = freed_by_destructors_.emplace();
  for (const Object& object : run_.ledger->objects) {
    if (!IsHost(object) || object.driver_owned || object.state != State::Released || object.released.record_kind != RecordKind::Host)
      continue;
    if (CalledByDriver(*run_.journal, object.released.stack)) ++counts[{object.kind, SiteKey(*run_.journal, object.acquired)}];
  }
  return counts;
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

const UsualCloses& Rehearsed::closes() const {
  if (closes_ == nullptr) closes_ = std::make_shared<const UsualCloses>(UsualClosesOf(run_));
  return *closes_;
}

const ViolationCounts& Rehearsed::entries_left() const {
  if (entries_left_.has_value()) return *entries_left_;
  ViolationCounts& left = entries_left_.emplace();
  const RestoredEntries restored(run_);
  for (const Violation& one : run_.ledger->violations) {
    if (one.rule == Rule::ContextStack && restored.Of(one.where) == Restored::Perhaps)
      ++left[{one.rule, one.kind, SiteKey(*run_.journal, one.where), SiteKey(*run_.journal, one.other)}];
  }
  return left;
}

const RehearsedCycle& Rehearsed::cycle(std::uint32_t number) const {
  const auto [found, fresh] = cycles_.try_emplace(number);
  RehearsedCycle& cycle = found->second;
  if (!fresh) return cycle;
  CycleMarks& marks = cycle;
  marks = MarksOf(run_, number);
  for (const std::uint32_t index : run_.facts().calls) {
    const Record& call = run_.record(index);
    if (call.cycle != number || call.end == 0) continue;
    if (call.result == CUDA_SUCCESS) {
      ++cycle.successes[BaseOf(call)];
    } else {
      ++cycle.failures[SiteKey(*run_.journal, SiteOf(call))];
    }
  }
  for (const Object& object : run_.ledger->objects) {
    if (cycle.end != 0 && IsLoneDriverObject(object) && IsHeldAt(object, cycle.end))
      ++cycle.held[{object.kind, SiteKey(*run_.journal, object.acquired)}];
  }
  return cycle;
}

}  // namespace cuaudit::harness
