// SPDX-License-Identifier: MIT
#include "harness/sweep/host_plan.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/site_text.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {
namespace {

struct HostRow {
  faults::HostCall call;
  driver::BaseId base;
  const char* none;
  const char* foreign;
};
constexpr HostRow kHostRows[] = {
    {faults::HostCall::Allocate, faults::kHostAllocation,
     "host_oom: no allocation by the program's own modules, or a sanitizer owns the heap, or a malloc of the program's, and nothing can be "
     "refused there",
     "host_oom: allocations by the C library, the loader or the driver"},
    {faults::HostCall::ThreadCreate, faults::kHostThread, "host_thread: no thread was started by the program's own modules",
     "host_thread: threads started by the C library, the driver or a sanitizer"},
};

void Append(const HostRow& row, const faults::JournalView& rehearsal, const PlanOptions& options, PlannedFaults* plan) {
  std::vector<const faults::Record*> own;
  std::uint64_t foreign = 0;
  for (const faults::Record& record : rehearsal.records()) {
    const bool host = record.kind == faults::RecordKind::Host && record.begin != 0;
    if (!host || record.call != static_cast<std::uint16_t>(row.call)) continue;
    if (record.occurrence == 0) {
      ++foreign;
    } else {
      own.push_back(&record);
    }
  }
  if (own.empty()) {
    plan->skipped[row.none] = 1;
    return;
  }
  if (foreign != 0) plan->skipped[row.foreign] += foreign;
  std::sort(own.begin(), own.end(), [](const faults::Record* a, const faults::Record* b) { return a->occurrence < b->occurrence; });
  for (const faults::Record* const record : own) {
    ++plan->possible;
    if (options.limit != 0 && plan->faults.size() >= options.limit) {
      ++plan->skipped["trials beyond --limit"];
      continue;
    }
    faults::Fault fault;
    fault.base = row.base;
    fault.occurrence = record->occurrence;
    fault.how = faults::HostFaultOf(row.base)->how;
    char text[faults::kMaxFaultText];
    plan->faults.emplace_back(text, faults::FormatFault(fault, text, sizeof(text)));
    plan->sites.push_back(record->stack == 0 ? 0 : SiteKey(rehearsal, RecordSite(*record)));
  }
}

}  // namespace

void AppendHostFaults(const faults::JournalView& rehearsal, const PlanOptions& options, PlannedFaults* plan) {
  for (const HostRow& row : kHostRows) {
    const std::string_view option = faults::HostFaultOf(row.base)->option;
    if (std::find(options.hows.begin(), options.hows.end(), option) != options.hows.end()) Append(row, rehearsal, options, plan);
  }
}

}  // namespace cuaudit::harness
