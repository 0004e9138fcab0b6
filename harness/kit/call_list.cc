// SPDX-License-Identifier: MIT
#include "harness/kit/call_list.h"

#include <map>

namespace cuaudit::harness {

std::size_t CountCalls(const CallList& list) {
  std::size_t count = 0;
  for (const Stage& stage : list.stages) count += stage.steps.size() + stage.rest.size() + (stage.failing ? 1 : 0);
  return count;
}

std::vector<std::string> FaultsOf(const CallList& list) {
  std::vector<std::string> faults;
  std::map<driver::BaseId, std::uint32_t> made;
  for (const Stage& stage : list.stages) {
    for (const Step& step : stage.steps) ++made[driver::BaseOf(step.call)];
    if (!stage.failing) continue;
    faults::Fault fault = stage.failing->fault;
    fault.occurrence = ++made[fault.base];
    fault.site = 0;
    fault.follows = false;
    fault.phase = faults::Phase::Any;
    char text[faults::kMaxFaultText];
    faults.emplace_back(text, faults::FormatFault(fault, text, sizeof(text)));
  }
  return faults;
}

}  // namespace cuaudit::harness
