// SPDX-License-Identifier: MIT
#include "harness/sweep/host_plan.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "harness/verdict/judge.h"

namespace cuaudit::harness {
namespace {

struct HostRow {
  Asked asked;
  driver::BaseId base;
  Reason none;
  Reason foreign;
};
constexpr HostRow kHostRows[] = {
    {Asked::Memory, faults::kHostAllocation, Reason::OomNone, Reason::OomForeign},
    {Asked::Thread, faults::kHostThread, Reason::ThreadNone, Reason::ThreadForeign},
};

void Append(const HostRow& row, const Evidence& rehearsal, const PlanOptions& options, PlannedFaults* plan) {
  const auto of = static_cast<std::size_t>(row.asked);
  const std::uint64_t foreign = rehearsal.facts().foreign[of];
  std::vector<const faults::Record*> own;
  for (const std::uint32_t index : rehearsal.facts().asked[of]) own.push_back(&rehearsal.record(index));
  if (own.empty()) {
    plan->skipped[row.none] = 1;
    return;
  }
  if (foreign != 0) plan->skipped[row.foreign] += foreign;
  std::sort(own.begin(), own.end(), [](const faults::Record* a, const faults::Record* b) { return a->occurrence < b->occurrence; });
  for (const faults::Record* const record : own) {
    ++plan->possible;
    if (options.limit != 0 && plan->faults.size() >= options.limit) {
      ++plan->skipped[Reason::BeyondLimit];
      continue;
    }
    faults::Fault fault;
    fault.base = row.base;
    fault.occurrence = record->occurrence;
    fault.how = faults::HostFaultOf(row.base)->how;
    char text[faults::kMaxFaultText];
    plan->faults.emplace_back(text, faults::FormatFault(fault, text, sizeof(text)));
    plan->sites.push_back(record->stack == 0 ? 0 : SiteKey(*rehearsal.journal, SiteOf(*record)));
  }
}

}  // namespace

void AppendHostFaults(const Evidence& rehearsal, const PlanOptions& options, PlannedFaults* plan) {
  for (const HostRow& row : kHostRows) {
    const std::string_view option = faults::HostFaultOf(row.base)->option;
    if (std::find(options.hows.begin(), options.hows.end(), option) != options.hows.end()) Append(row, rehearsal, options, plan);
  }
}

}  // namespace cuaudit::harness
