// SPDX-License-Identifier: MIT
#include "harness/verdict/how_left.h"

#include <algorithm>

#include "faults/driver/result.h"

namespace cuaudit::harness {

using driver::BaseId;
using driver::Kind;

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
           {std::string(driver::Name(driver::BaseOf(static_cast<driver::CallId>(call->call)))),
            std::string(driver::ShortResultName(static_cast<CUresult>(call->result)))}}};
}

UndestroyedContexts::UndestroyedContexts(const Ledger& ledger) {
  for (const Object& object : ledger.objects) {
    if (object.kind != Kind::Context || object.state != State::ReleaseRefused) continue;
    // The creator of a context that the program attached to is somebody else.
    if (driver::BaseOf(static_cast<driver::CallId>(object.acquired.call)) == BaseId::CtxAttach) continue;
    contexts_[{object.pid, object.handle}] = &object;
  }
}

const Site* UndestroyedContexts::EndOf(const Object& object) const {
  if (object.state != State::Live) return nullptr;
  auto found = contexts_.find({object.pid, object.context});
  // Peer access ends with either of its two contexts.
  if (found == contexts_.end() && object.kind == Kind::PeerAccess) found = contexts_.find({object.pid, object.parent});
  if (found == contexts_.end()) return nullptr;
  const Object& context = *found->second;
  const bool was_in_it = object.acquired.begin > context.acquired.begin && object.acquired.begin < context.released.begin;
  return was_in_it && object.cycle == context.cycle ? &context.released : nullptr;
}

}  // namespace cuaudit::harness
