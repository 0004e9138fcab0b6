// SPDX-License-Identifier: MIT
// make_plan.h: which faults a sweep tries, in a stable order, from what the fault-free run called.
//
//   Owns      its texts.
//   Threads   pure.
//   Errors    ParseHows names what it did not understand. Calls that are left out are counted by reason.
//   Faults    makes no driver calls.
//   Source    design section 7, step 2, first order.
//
// Order: as the calls began. A program with several threads has no such order that holds from run to run: then by name and occurrence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "faults/journal/journal_view.h"
#include "faults/plan/fault.h"
#include "harness/sweep/status.h"

namespace cuaudit::harness {

struct PlanOptions {
  std::vector<std::string> hows = {"refuse"};
  bool all_codes = false;
  std::vector<std::string> calls;  // base entry points; empty: all
  std::size_t limit = 0;           // trials, 0: no limit
};

struct PlannedFaults {
  std::vector<std::string> faults;
  std::vector<std::uint64_t> sites;              // one per fault: SiteKey of the call it is meant for, 0 when its call stack was not kept
  std::size_t possible = 0;                      // faults without --call and --limit
  std::map<std::string, std::uint64_t> skipped;  // reason -> calls or trials
};

// Checks `hows` and `calls` before anything runs.
Status CheckPlanOptions(const PlanOptions& options);

// 0 when the journal's table had no room for the call stack any more.
std::uint64_t KeptSite(const faults::JournalView& journal, const faults::Record& record);

PlannedFaults MakePlan(const faults::JournalView& rehearsal, const PlanOptions& options);

}  // namespace cuaudit::harness
