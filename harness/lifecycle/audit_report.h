// SPDX-License-Identifier: MIT
// audit_report.h: a report as the public Audit of a lifecycle: names, and call stacks from the program's innermost frame to its step.
//
//   Threads   SitesOfThread: one table for each thread, since the same places come back in the next sweep, and opening debug information
//             costs more than many sweeps.
//   Faults    makes no driver calls.
#pragma once

#include <string>
#include <vector>

#include "harness/sweep/aggregate.h"
#include "harness/sweep/site_text.h"
#include "include/cuaudit/lifecycle.h"
#include "reports/run.h"

namespace cuaudit::harness {

SiteTexts* SitesOfThread();

// How a reader runs this test again; `lifecycle` empty: whatever it runs.
Reproduction ReproductionOf(const std::string& lifecycle);

// Adds findings, notes and counts of `run`.
void AddReport(const report::Run& run, Audit* audit);

// Adds what no fault led to.
void AddFaultFree(const std::vector<TrialFindingText>& findings, const std::vector<TrialFindingText>& notes, const std::string& lifecycle,
                  Audit* audit);

}  // namespace cuaudit::harness
