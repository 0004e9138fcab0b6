// SPDX-License-Identifier: MIT
// audit_report.h: converts a report into the public Audit of a lifecycle: names, and call stacks from the program's innermost frame to its
// step.
//
//   Threads   SitesOfThread has one table per thread. It is kept, because sweeps name the same places again, and opening debug information
//             costs more than many sweeps.
#pragma once

#include <string>
#include <vector>

#include "harness/sweep/findings/aggregate.h"
#include "harness/sweep/run/site_text.h"
#include "include/cuaudit/lifecycle.h"
#include "reports/run.h"

namespace cuaudit::harness {

SiteTexts* SitesOfThread();

// How to run this test again. `lifecycle` empty: everything that the test runs.
Reproduction ReproductionOf(const std::string& lifecycle);

// Adds findings, notes and counts of `run`.
void AddReport(const report::Run& run, Audit* audit);

// Adds findings and notes that have no fault.
void AddFaultFree(const std::vector<TrialFindingText>& findings, const std::vector<TrialFindingText>& notes, const std::string& lifecycle,
                  Audit* audit);

}  // namespace cuaudit::harness
