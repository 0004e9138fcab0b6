// SPDX-License-Identifier: MIT
// aggregate.h: many trials as one report: equal findings counted once, each with the command line that shows it again.
//
//   Threads   pure.
//   Faults    makes no driver calls.
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

#include "harness/sweep/benign.h"
#include "harness/sweep/fingerprint.h"
#include "harness/sweep/observation.h"
#include "harness/sweep/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct Reproduction {
  std::string replay;          // "cuaudit replay --driver=sim"
  std::string run;             // "cuaudit run --driver=sim"
  std::string program;         // the command, quoted
  bool is_test = false;        // of a lifecycle in C++: `program` is its test, which reads the environment
  std::string lifecycle = {};  // its name; empty: whatever the test runs
};

// "cuaudit replay --driver=sim --fault 'cuInit#1=NOT_INITIALIZED,refuse' -- prog args"; without faults the run. Of a lifecycle
// "CUAUDIT_CASE='pool' CUAUDIT_FAULT='cuInit#1=NOT_INITIALIZED,refuse' ./test --gtest_filter=Pool.Unwinds".
std::string ReproduceLine(const Reproduction& reproduction, std::span<const std::string> faults);

// Which entries of a report stand for which group; lives as long as entries are added to that report.
struct Groups {
  std::unordered_map<std::uint64_t, std::size_t> findings;
  std::unordered_map<std::uint64_t, std::size_t> notes;
  FingerprintSet fingerprints;
};

// A fault text in the report's words, at the place `site`; empty for no fault text.
std::optional<report::Fault> FaultText(const std::string& text, const report::Acquired& site);

// Adds findings, notes, verdicts and counts of `trials`, which must be in plan order. An entry that several trials show keeps the faults of
// the first and the largest count and bytes of all. `declared`: the declarations that TrialResult::benign counts. `least`: results by
// number, where a finding names a trial that shows it with fewer faults.
using Results = std::map<std::size_t, TrialResult>;
void AddTrials(std::span<const TrialResult> trials, const Reproduction& reproduction, std::span<const Benign> declared, Groups* groups,
               report::Run* run, const Results* least = nullptr);

// Adds what is wrong without any fault: violations become findings. What is merely left at exit becomes a note.
void AddFaultFree(const Observation& run_seen, const Reproduction& reproduction, SiteTexts* sites, Groups* groups, report::Run* run);
// Adds entries that no fault led to.
void AddFaultFree(const std::vector<TrialFindingText>& findings, const std::vector<TrialFindingText>& notes,
                  const Reproduction& reproduction, Groups* groups, report::Run* run);
// The first for a report to which nothing else is added.
void AddFaultFree(const Observation& run_seen, const Reproduction& reproduction, SiteTexts* sites, report::Run* run);

// Adds a finding that no trial showed but the report as a whole.
void AddDeclared(const TrialFindingText& text, const Reproduction& reproduction, Groups* groups, report::Run* run);

// By what the findings of one report are one, with all faults of their trial.
std::uint64_t GroupOf(const TrialResult& trial, const TrialFindingText& finding);

// What became of the kernels; nothing when none ran on the simulated driver.
std::optional<report::Kernels> KernelsOf(const faults::JournalView& journal);

// Processes that a fault-free run left running, and what became of them.
void AddLeftBehind(const Ending& ending, const char* became, report::Run* run);

// Driver, totals.calls, totals.sites and what the run could not see.
void DescribeRun(const Observation& run_seen, report::Run* run);

// After DescribeRun, of a report about one trial: of whose host less was seen.
void DescribeHostOfTrial(const Observation& trial, report::Run* run);

// Arguments, by number, whose content is no part of what the sweep goes on with.
void AddOutputs(const std::set<std::size_t>& arguments, report::Run* run);

}  // namespace cuaudit::harness
