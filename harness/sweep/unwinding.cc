// SPDX-License-Identifier: MIT
#include "harness/sweep/unwinding.h"

#include "faults/driver/effects.h"
#include "faults/plan/fault.h"
#include "harness/sweep/make_plan.h"
#include "harness/sweep/plan_file.h"

namespace cuaudit::harness {
namespace {

using faults::Record;

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

}  // namespace

States AllStates(const CallStates& calls) {
  States states;
  for (const CallState& call : calls.calls) {
    if (call.state != 0) states.insert(call.state);
  }
  return states;
}

Unwinding FaultsWhileUnwinding(const Observation& rehearsal, const States& first, const Observation& trial, std::size_t faults,
                               bool prune) {
  Unwinding unwinding;
  const std::vector<bool> lost = LostBeyond(rehearsal.journal, rehearsal.ledger, trial.journal, trial.ledger);
  const CallStates calls = StatesOf(trial.journal, trial.ledger, lost);
  const Record* const fault = LastFault(calls, faults);
  if (fault == nullptr) return unwinding;
  const bool dies = trial.ending.timed_out || trial.ending.signal != 0;
  for (const CallState& call : calls.calls) {
    const Record& record = *call.record;
    if (record.begin <= fault->begin || record.cycle != fault->cycle || (record.flags & faults::kInjected) != 0) continue;
    if (calls.threaded && (record.pid != fault->pid || record.tid != fault->tid)) continue;
    const std::vector<faults::Fault> ways = WaysWhileUnwinding(record);
    if (ways.empty()) continue;
    if (dies) {
      unwinding.pruned["second faults after a first fault that kills the program by itself"] += ways.size();
      continue;
    }
    const std::uint64_t state = calls.threaded ? PlaceOnly(call) : call.state;
    if (prune && state == 0) {
      unwinding.pruned["second faults at unknown call stacks (--stacks)"] += ways.size();
      continue;
    }
    if (prune && !calls.threaded && first.contains(state)) {
      unwinding.pruned["second faults where the program had recovered: a first fault at the same place and state tells the same"] +=
          ways.size();
      continue;
    }
    for (const faults::Fault& way : ways) unwinding.faults.push_back({TextOf(way), call.site, state});
  }
  return unwinding;
}

}  // namespace cuaudit::harness
