// SPDX-License-Identifier: MIT
#include <algorithm>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/parts.h"

namespace cuaudit::harness {

bool WasCutOff(const Object& object, const Facts& facts) {
  const ProcessFacts* const process = facts.Process(object.pid);
  return process == nullptr || process->exit == 0;
}

Details HowItStayed(const Object& object, const Facts& facts) {
  Details how;
  if (object.state == State::Orphaned) how.push_back({Detail::GoneWithContext});
  const ProcessFacts* const process = facts.Process(object.pid);
  if (process == nullptr) return how;
  if (std::find(process->running.begin(), process->running.end(), object.tid) != process->running.end())
    how.push_back({Detail::ThreadStillRan});
  if (process->exit == 0 && process != &facts.processes.front()) how.push_back({Detail::ChildStillRan});
  return how;
}

Details HowItAnswered(const Evidence& trial, const Site& release) {
  const faults::Record* const call = trial.call_at(release.begin);
  if (call == nullptr) return {};
  return {{Detail::Answered,
           {std::string(driver::Name(BaseOf(*call))), std::string(driver::ShortResultName(static_cast<CUresult>(call->result)))}}};
}

std::set<std::uint64_t> RefusedPlaces(const Evidence& trial, std::uint32_t pid) {
  std::set<std::uint64_t> places;
  for (const std::uint32_t index : trial.facts().calls) {
    const faults::Record& call = trial.record(index);
    if (call.pid == pid && AnswerOf(call) != Answer::Succeeded && driver::IsAcquire(driver::EffectOf(BaseOf(call)).effect))
      places.insert(SiteKey(*trial.journal, SiteOf(call)));
  }
  return places;
}

namespace {

bool HoldsUserObjects(driver::Kind kind) {
  return kind == driver::Kind::Graph || kind == driver::Kind::ExecutableGraph || kind == driver::Kind::UserObject;
}

}  // namespace

bool MakesUnownedHolder(const faults::Record& call) {
  constexpr unsigned kAfter = faults::kInjected | faults::kForwarded;
  if (!IsProgramCall(call) || (call.flags & kAfter) != kAfter) return false;
  const driver::EffectRow& row = driver::EffectOf(BaseOf(call));
  return HoldsUserObjects(row.kind) && (driver::IsAcquire(row.effect) || row.effect == driver::Effect::EndsCapture);
}

Site KeptFromDestruction(const Evidence& trial) {
  for (const Object& object : trial.ledger->objects) {
    if (HoldsUserObjects(object.kind) && object.state == State::ReleaseRefused) return object.released;
  }
  for (const std::uint32_t index : trial.own_calls()) {
    if (MakesUnownedHolder(trial.record(index))) return SiteOf(trial.record(index));
  }
  return {};
}

CutShort CutShortIn(const Evidence& trial) {
  CutShort calls;
  for (const std::uint32_t index : trial.own_calls()) {
    const faults::Record& call = trial.record(index);
    const Answer answer = AnswerOf(call);
    if ((answer != Answer::Refused && answer != Answer::After) || driver::IsRelease(driver::EffectOf(BaseOf(call)).effect)) continue;
    if (const std::uint64_t key = RuntimeCallKey(*trial.journal, SiteOf(call))) calls.emplace(key, SiteOf(call));
  }
  return calls;
}

}  // namespace cuaudit::harness
