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

// One allocation or thread that can be refused.
struct Turn {
  std::uint32_t occurrence = 0;
  std::uint64_t site = 0;  // 0: unknown call stack
};

std::vector<Turn> CountedTurns(const HostRow& row, const Rehearsal::HostTurns& turns) {
  std::vector<Turn> own(row.asked == Asked::Memory ? turns.allocations : turns.threads);
  for (std::size_t i = 0; i < own.size(); ++i) own[i].occurrence = static_cast<std::uint32_t>(i + 1);
  return own;
}

std::vector<Turn> RecordedTurns(const HostRow& row, const Evidence& run) {
  std::vector<Turn> own;
  for (const std::uint32_t index : run.facts().asked[static_cast<std::size_t>(row.asked)]) {
    const faults::Record& record = run.record(index);
    own.push_back({record.occurrence, record.stack == 0 ? 0 : SiteKey(*run.journal, SiteOf(record))});
  }
  std::sort(own.begin(), own.end(), [](const Turn& a, const Turn& b) { return a.occurrence < b.occurrence; });
  return own;
}

void Append(const HostRow& row, const Rehearsal& rehearsal, const PlanOptions& options, PlannedFaults* plan) {
  const Evidence run = rehearsal.run.evidence();
  const std::vector<Turn> own = rehearsal.host_turns ? CountedTurns(row, *rehearsal.host_turns) : RecordedTurns(row, run);
  const std::uint64_t foreign = run.facts().foreign[static_cast<std::size_t>(row.asked)];
  if (own.empty()) {
    plan->skipped[row.none] = 1;
    return;
  }
  if (foreign != 0) plan->skipped[row.foreign] += foreign;
  for (const Turn& turn : own) {
    ++plan->possible;
    if (options.limit != 0 && plan->faults.size() >= options.limit) {
      ++plan->skipped[Reason::BeyondLimit];
      continue;
    }
    faults::Fault fault;
    fault.base = row.base;
    fault.occurrence = turn.occurrence;
    fault.how = faults::HostFaultOf(row.base)->how;
    char text[faults::kMaxFaultText];
    plan->faults.emplace_back(text, faults::FormatFault(fault, text, sizeof(text)));
    plan->sites.push_back(turn.site);
  }
}

}  // namespace

void AppendHostFaults(const Rehearsal& rehearsal, const PlanOptions& options, PlannedFaults* plan) {
  for (const HostRow& row : kHostRows) {
    const std::string_view option = faults::HostFaultOf(row.base)->option;
    if (std::find(options.hows.begin(), options.hows.end(), option) != options.hows.end()) Append(row, rehearsal, options, plan);
  }
}

}  // namespace cuaudit::harness
