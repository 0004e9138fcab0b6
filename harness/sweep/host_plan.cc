// SPDX-License-Identifier: MIT
#include "harness/sweep/host_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "harness/sweep/site_text.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {
namespace {

bool IsAllocation(const faults::Record& record) {
  return record.kind == faults::RecordKind::Host && record.begin != 0 &&
         record.call == static_cast<std::uint16_t>(faults::HostCall::Allocate);
}

}  // namespace

void AppendHostFaults(const faults::JournalView& rehearsal, const PlanOptions& options, PlannedFaults* plan) {
  if (std::find(options.hows.begin(), options.hows.end(), faults::kHostOom) == options.hows.end()) return;
  std::vector<const faults::Record*> own;
  std::uint64_t foreign = 0;
  for (const faults::Record& record : rehearsal.records()) {
    if (!IsAllocation(record)) continue;
    if (record.occurrence == 0) {
      ++foreign;
    } else {
      own.push_back(&record);
    }
  }
  if (own.empty()) {
    plan->skipped["host_oom: no allocation by the program's own modules, or a sanitizer owns the heap and nothing can be refused there"] =
        1;
    return;
  }
  if (foreign != 0) plan->skipped["host_oom: allocations by the C library, the loader or the driver"] += foreign;
  std::sort(own.begin(), own.end(), [](const faults::Record* a, const faults::Record* b) { return a->occurrence < b->occurrence; });
  for (const faults::Record* const record : own) {
    ++plan->possible;
    if (options.limit != 0 && plan->faults.size() >= options.limit) {
      ++plan->skipped["trials beyond --limit"];
      continue;
    }
    faults::Fault fault;
    fault.base = faults::kHostAllocation;
    fault.occurrence = record->occurrence;
    fault.how = faults::How::HostOom;
    char text[faults::kMaxFaultText];
    plan->faults.emplace_back(text, faults::FormatFault(fault, text, sizeof(text)));
    plan->sites.push_back(record->stack == 0 ? 0 : SiteKey(rehearsal, RecordSite(*record)));
  }
}

}  // namespace cuaudit::harness
