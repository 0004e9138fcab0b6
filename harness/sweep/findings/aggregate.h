// SPDX-License-Identifier: MIT
// aggregate.h: merges many trials into one report. Equal findings become one entry with the command line that shows it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/defect/defects.h"
#include "harness/sweep/findings/benign.h"
#include "harness/sweep/findings/fingerprint.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct Reproduction {
  std::string replay;          // "cuaudit replay --driver=sim"
  std::string run;             // "cuaudit run --driver=sim"
  std::string program;         // the command, quoted
  bool is_test = false;        // for a lifecycle in C++: `program` is its test, which reads the environment
  std::string lifecycle = {};  // name of the lifecycle; empty: all that the test runs
};

// "cuaudit replay --driver=sim --fault 'cuInit#1=NOT_INITIALIZED,refuse' -- prog args"; the run command when `faults` is empty. For a
// lifecycle: "CUAUDIT_CASE='pool' CUAUDIT_FAULT='cuInit#1=NOT_INITIALIZED,refuse' ./test --gtest_filter=Pool.Unwinds".
std::string ReproduceLine(const Reproduction& reproduction, std::span<const std::string> faults);

// Index of the report entry of each group. Kept as long as entries are added to that report.
struct Groups {
  std::unordered_map<std::uint64_t, std::size_t> findings;
  std::unordered_map<std::uint64_t, std::size_t> notes;
  FingerprintSet fingerprints;
  DefectFinder defects;
};

// The fault `text` at the place `site` as a report shows it; empty for an empty text.
std::optional<report::Fault> FaultText(const std::string& text, const report::Acquired& site);

// Adds findings, notes, verdicts and counts of `trials`, which must be in plan order. An entry that several trials show keeps the faults of
// the first trial and the largest count and bytes. `declared` holds the declarations that TrialResult::benign counts. `least` holds all
// results by number; a finding may name a trial there that shows it with fewer faults.
using Results = std::map<std::size_t, TrialResult>;
void AddTrials(std::span<const TrialResult> trials, const Reproduction& reproduction, std::span<const Benign> declared, Groups* groups,
               report::Run* run, const Results* least = nullptr);

// Adds what is wrong without any fault. Violations become findings; objects left at exit become notes, unless nothing may stay.
void AddFaultFree(const Observation& run_seen, const Reproduction& reproduction, SiteTexts* sites, Groups* groups, report::Run* run,
                  const JudgeOptions& options = {});
// Adds entries that have no fault.
void AddFaultFree(const std::vector<TrialFindingText>& findings, const std::vector<TrialFindingText>& notes,
                  const Reproduction& reproduction, Groups* groups, report::Run* run);
// The first AddFaultFree, for a report with no other entries.
void AddFaultFree(const Observation& run_seen, const Reproduction& reproduction, SiteTexts* sites, report::Run* run,
                  const JudgeOptions& options = {});

// Adds a finding of the report as a whole, which no single trial shows.
void AddDeclared(const TrialFindingText& text, const Reproduction& reproduction, Groups* groups, report::Run* run);

// Key under which findings merge into one report entry. It includes all faults of the trial.
std::uint64_t GroupOf(const TrialResult& trial, const TrialFindingText& finding);

// Kernels with and without a host kernel; empty when none ran on the simulated driver.
std::optional<report::Kernels> KernelsOf(const faults::JournalView& journal);

// Notes the processes that a fault-free run left running, and what cuaudit did with them.
void AddLeftBehind(const Ending& ending, const char* became, report::Run* run);

// Fills driver, totals.calls, totals.sites and what the run could not see.
void DescribeRun(const Observation& run_seen, report::Run* run);

// Called after DescribeRun for a report of one trial. Notes the host resources that the trial watched less than the fault-free run.
void DescribeHostOfTrial(const Observation& trial, report::Run* run);

// Notes the arguments, by number, whose file content is not part of the sweep's digest.
void AddOutputs(const std::set<std::size_t>& arguments, report::Run* run);

}  // namespace cuaudit::harness
