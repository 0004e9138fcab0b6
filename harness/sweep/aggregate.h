// SPDX-License-Identifier: MIT
// aggregate.h: many trials as one report: equal findings counted once, each with the command line that shows it again.
//
//   Owns      nothing.
//   Threads   pure.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    ours.
//
// Fingerprint v1: rule, kind, where the object was acquired, which call was made to fail from where, with which code and how. Occurrence
// is left out: the third turn of a loop is the same finding as the first.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/sweep/observation.h"
#include "harness/sweep/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct Reproduction {
  std::string replay;   // "cuaudit replay --driver=sim"
  std::string run;      // "cuaudit run --driver=sim"
  std::string program;  // the command, quoted
};

// "cuaudit replay --driver=sim --fault 'cuInit#1=NOT_INITIALIZED,refuse' -- prog args"; without faults the run.
std::string ReproduceLine(const Reproduction& reproduction, std::span<const std::string> faults);

std::string Fingerprint(const TrialFindingText& finding, const std::optional<report::Fault>& fault, std::uint64_t fault_key);

// The fault of a trial in the report's words; empty for no fault text.
std::optional<report::Fault> FaultText(const TrialResult& trial);

// Adds findings, notes, verdicts and counts of `trials`, which must be in plan order.
void AddTrials(std::span<const TrialResult> trials, const Reproduction& reproduction, report::Run* run);

// Adds what is wrong without any fault: violations become findings. What is merely left at exit becomes a note.
void AddFaultFree(const Observation& run_seen, const Reproduction& reproduction, SiteTexts* sites, report::Run* run);

// Driver, totals.calls, totals.sites and what the run could not see.
void DescribeRun(const Observation& run_seen, report::Run* run);

}  // namespace cuaudit::harness
