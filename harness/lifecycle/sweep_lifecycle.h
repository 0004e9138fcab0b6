// SPDX-License-Identifier: MIT
// sweep_lifecycle.h: runs a sweep of a lifecycle, or one trial of it, with the engine that sweeps programs (harness/sweep).
//
//   Threads   one thread.
//   Errors    what makes a sweep impossible becomes Audit::message with outcome Error or NotExercised.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/findings/aggregate.h"
#include "harness/sweep/run/site_text.h"
#include "include/cuaudit/lifecycle.h"
#include "reports/run.h"

namespace cuaudit::harness {

// `only` holds the faults of the one trial to run; empty: all trials.
void SweepLifecycle(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, const std::vector<std::string>& only, Audit* audit);

// Adds what the lifecycle declares benign; an error says that it comes from there.
Status AddBenignOf(const Lifecycle& lifecycle, std::vector<Benign>* declared);

// Checks in one world whether a lifecycle leaves more behind after ten cycles than after one, by kind and place. Counts are exact, so one
// more is growth. A cycle that reports a failure, or a lifecycle that never calls the driver, becomes Audit::message.
void CheckCycles(const Lifecycle& lifecycle, const CycleOptions& options, Audit* audit);

// The table of the calling thread. It is kept, because sweeps name the same places again, and opening debug information costs more than
// many sweeps.
SiteTexts* SitesOfThread();

// Absent when nothing was run.
std::optional<words::Outcome> ReportedOutcome(AuditOutcome outcome);

// How to run this test again. `lifecycle` empty: everything that the test runs.
Reproduction ReproductionOf(const std::string& lifecycle);

// Adds findings, notes and counts of `run`.
void AddReport(const report::Run& run, Audit* audit);

// Adds findings and notes that have no fault.
void AddFaultFree(const std::vector<TrialFindingText>& findings, const std::vector<TrialFindingText>& notes, const std::string& lifecycle,
                  Audit* audit);

}  // namespace cuaudit::harness
