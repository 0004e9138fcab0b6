// SPDX-License-Identifier: MIT
#include "harness/verdict/how_left.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "faults/driver/result.h"

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
  const std::vector<std::uint32_t>& calls = trial.facts().calls;
  const auto call = std::lower_bound(calls.begin(), calls.end(), release.begin,
                                     [&](std::uint32_t index, std::uint64_t begin) { return trial.record(index).begin < begin; });
  if (call == calls.end() || trial.record(*call).begin != release.begin) return {};
  const faults::Record& record = trial.record(*call);
  return {{Detail::Answered,
           {std::string(driver::Name(driver::BaseOf(static_cast<driver::CallId>(record.call)))),
            std::string(driver::ShortResultName(static_cast<CUresult>(record.result)))}}};
}

}  // namespace cuaudit::harness
