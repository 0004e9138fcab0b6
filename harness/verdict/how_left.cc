// SPDX-License-Identifier: MIT
#include "harness/verdict/how_left.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "faults/driver/result.h"

namespace cuaudit::harness {

using driver::BaseId;
using driver::Kind;

bool WasCutOff(const Object& object, const Facts& facts) {
  const ProcessFacts* const process = facts.Process(object.pid);
  return process == nullptr || process->exit == 0;
}

std::string HowItStayed(const Object& object, const Facts& facts) {
  std::string how;
  const auto add = [&how](const char* part) { how += (how.empty() ? "" : "; ") + std::string(part); };
  if (object.state == State::Orphaned) add("gone with its context");
  const ProcessFacts* const process = facts.Process(object.pid);
  if (process == nullptr) return how;
  if (std::find(process->running.begin(), process->running.end(), object.tid) != process->running.end())
    add("acquired by a thread that still ran when the program exited");
  if (process->exit == 0 && process != &facts.processes.front())
    add("held by a child process that still ran, or ended by exec or by a signal");
  return how;
}

std::string HowItAnswered(const Evidence& trial, const Site& release) {
  const std::vector<std::uint32_t>& calls = trial.facts().calls;
  const auto call = std::lower_bound(calls.begin(), calls.end(), release.begin,
                                     [&](std::uint32_t index, std::uint64_t begin) { return trial.record(index).begin < begin; });
  if (call == calls.end() || trial.record(*call).begin != release.begin) return {};
  const faults::Record& record = trial.record(*call);
  return std::string(driver::Name(driver::BaseOf(static_cast<driver::CallId>(record.call)))) + " answered " +
         std::string(driver::ShortResultName(static_cast<CUresult>(record.result)));
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
