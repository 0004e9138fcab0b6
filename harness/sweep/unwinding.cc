// SPDX-License-Identifier: MIT
#include "harness/sweep/unwinding.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/plan/fault.h"
#include "harness/sweep/make_plan.h"
#include "harness/sweep/plan_file.h"

namespace cuaudit::harness {
namespace {

using faults::Record;

constexpr std::uint64_t kOnTheWayBack = 1;

bool Acquired(const Record& record) {
  const driver::Effect effect = driver::EffectOf(driver::BaseOf(static_cast<driver::CallId>(record.call))).effect;
  return record.result == CUDA_SUCCESS && driver::IsAcquire(effect) && effect != driver::Effect::PushesContext;
}

constexpr const char* kKilled = "the first fault alone kills the program";
constexpr const char* kNoStack = "its call stack is unknown (--stacks)";

// The call that the last of `faults` hit first; null when it hit none.
const Record* LastFault(const CallStates& calls, std::size_t faults) {
  for (const CallState& call : calls.calls) {
    if (call.record->fault == faults) return call.record;
  }
  return nullptr;
}

// Turns of threads change from run to run; the place and the phase of a call do not.
std::uint64_t PlaceOnly(const CallState& call) {
  if (call.record->stack == 0 || call.site == 0) return 0;
  return HashNumber(static_cast<std::uint64_t>(call.record->phase), HashNumber(call.site, kHashSeed));
}

bool SameThread(const Record& a, const Record& b) { return a.pid == b.pid && a.tid == b.tid; }

// What the thread that was hit did since, as it did it; then all others.
std::vector<const CallState*> CallsSince(const Record& fault, const CallStates& calls) {
  std::vector<const CallState*> since;
  for (const CallState& call : calls.calls) {
    if (call.record->begin > fault.begin) since.push_back(&call);
  }
  const auto others =
      std::stable_partition(since.begin(), since.end(), [&](const CallState* one) { return SameThread(*one->record, fault); });
  std::stable_sort(since.begin(), others, [](const CallState* a, const CallState* b) { return a->record->begin < b->record->begin; });
  return since;
}

}  // namespace

States AllStates(const CallStates& calls) {
  States states;
  for (const CallState& call : calls.calls) {
    if (call.state != 0) states.insert(call.state);
  }
  return states;
}

Unwinding FaultsWhileUnwinding(const Observation& rehearsal, const States& first, const Observation& trial, std::size_t faults, bool prune,
                               const Places* by_site) {
  Unwinding unwinding;
  const std::vector<bool> lost = LostBeyond(rehearsal.journal, rehearsal.ledger, trial.journal, trial.ledger);
  const CallStates calls = StatesOf(trial.journal, trial.ledger, lost);
  const Record* const fault = LastFault(calls, faults);
  if (fault == nullptr) return unwinding;
  bool on_the_way_back = true;
  const bool dies = trial.ending.timed_out || trial.ending.signal != 0;
  std::unordered_map<std::uint64_t, std::uint32_t> since;  // calls by the thread that was hit, by place
  for (const CallState* const call : CallsSince(*fault, calls)) {
    const Record& record = *call->record;
    const bool hit_thread = SameThread(record, *fault);
    if (hit_thread) ++since[call->site];
    if (record.cycle != fault->cycle || (record.flags & faults::kInjected) != 0) continue;
    // What another thread does in a place that no fault-free run comes to is a way back too.
    const bool known_place = by_site == nullptr || call->site == 0 || by_site->contains(call->site);
    if (calls.threaded && !hit_thread && known_place) continue;
    const bool was_on_the_way_back = on_the_way_back || !hit_thread;
    if (hit_thread && Acquired(record)) on_the_way_back = false;
    std::vector<faults::Fault> ways = WaysWhileUnwinding(record);
    for (faults::Fault& way : ways) {
      if (by_site == nullptr) continue;
      if (hit_thread) {
        AddressAfter(call->site, since[call->site], &way);
      } else {
        AddressBySite(*call, &way);
      }
    }
    if (ways.empty()) continue;
    std::uint64_t state = calls.threaded ? PlaceOnly(*call) : call->state;
    if (prune && !calls.threaded && !was_on_the_way_back && first.contains(state)) {
      unwinding.pruned["second faults: same place and state as a first fault"] += ways.size();
      continue;
    }
    if (was_on_the_way_back && state != 0) state = HashNumber(kOnTheWayBack, state);
    const char* const why_not = dies ? kKilled : prune && state == 0 ? kNoStack : nullptr;
    for (const faults::Fault& way : ways) {
      NextFault next = {TextOf(way), call->site, state, record.phase};
      if (why_not == nullptr) {
        unwinding.faults.push_back(std::move(next));
      } else {
        unwinding.left_out.push_back({std::move(next), why_not});
      }
    }
  }
  return unwinding;
}

}  // namespace cuaudit::harness
