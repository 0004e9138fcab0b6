// SPDX-License-Identifier: MIT
#include "harness/verdict/how_left.h"

#include <algorithm>

#include "faults/driver/result.h"

namespace cuaudit::harness {

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
  const faults::Record* const call = trial.call_at(release.begin);
  if (call == nullptr) return {};
  return std::string(driver::Name(driver::BaseOf(static_cast<driver::CallId>(call->call)))) + " answered " +
         std::string(driver::ShortResultName(static_cast<CUresult>(call->result)));
}

}  // namespace cuaudit::harness
