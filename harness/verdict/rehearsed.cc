// SPDX-License-Identifier: MIT
#include "harness/verdict/rehearsed.h"

#include <algorithm>

#include "faults/driver/effects.h"
#include "harness/ledger/rules.h"
#include "harness/verdict/counted_places.h"
#include "harness/verdict/driver_owned.h"
#include "harness/verdict/put_back.h"
#include "harness/verdict/site_keys.h"

namespace cuaudit::harness {

using driver::Kind;
using faults::MarkKind;
using faults::Record;
using faults::RecordKind;

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
                   OtherTellsApart(violation.rule) ? keys.Of(violation.other) : 0}];
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

const PutBack& Rehearsed::put_back() const {
  if (put_back_ == nullptr) put_back_ = std::make_shared<const PutBack>(run_);
  return *put_back_;
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
      ++cycle.successes[driver::BaseOf(static_cast<driver::CallId>(call.call))];
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
