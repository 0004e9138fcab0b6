// SPDX-License-Identifier: MIT
// aggregate.h: many trials as one report, and when two findings are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/defect/defects.h"
#include "harness/sweep/findings/benign.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Keys by which findings are recognised as the same, within one report and from one build of the program to the next.
//
// Both keys cover the rule, the kind, the acquire place, the place where the finding shows, and the fault (call, place, code, how). The
// occurrence is left out: the third turn of a loop gives the same finding as the first. The keys differ in how they identify a place.

// Identifies places by SiteKey, so two lines of one function differ. Valid for one build of the program.
std::uint64_t GroupKey(const TrialFindingText& finding);
// Adds a fault to a key.
std::uint64_t AddFault(std::uint64_t key, const report::Fault& fault, std::uint64_t fault_key);

// Equal for what one release of a trial explains: what is done with an object that it released, or the loss of one whose release the driver
// refused in the wrong context, or because the object is none of its own. 0: no release explains it.
std::uint64_t CommonCall(const TrialFindingText& finding);

// The finding of the trial that equals `finding` apart from counts and faults; null for none. An object left behind is the same whether its
// context ended (orphaned) or, because that release failed as well, did not (leak).
const TrialFindingText* FindSame(const TrialResult& trial, const TrialFindingText& finding);

// "v1-" and 16 digits. A place is the call with the module and function of each frame, so a rebuilt program keeps its fingerprints. A frame
// with an unknown function is only its module.
std::string Fingerprint(const TrialFindingText& finding, const std::optional<report::Fault>& fault = {},
                        const std::vector<report::Fault>& then = {});

// Two places in one function have the same fingerprint. Within a report the second gets "-2", the third "-3", in the order of the report.
class FingerprintSet {
 public:
  std::string Claim(const std::string& fingerprint);

 private:
  std::unordered_map<std::string, std::size_t> claimed_;
};

// Merges many trials into one report. Equal findings become one entry with the command line that shows it again.

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

// The call, error and way of faults, which are the part of them that keys are made of. A sweep has thousands of trials whose faults differ
// in nothing but the occurrence, and parsing each would take longer than all else that is done with a trial here.
class FaultKinds {
 public:
  // The occurrence and the text are those of some fault of the same kind. Null for a text that is no fault. Valid as long as this object.
  const report::Fault* Of(const std::string& text);

 private:
  std::unordered_map<std::string, std::optional<report::Fault>> known_;  // by the text without its occurrence
  std::string kind_;
};

// The trial that shows a finding of another one with fewer faults; null: none does.
using Fewer = std::function<const TrialResult*(const TrialResult& trial, const TrialFindingText& finding)>;

// Adds findings, notes, verdicts and counts of `trials`, which must be in plan order. An entry that several trials show keeps the faults of
// the first trial and the largest count and bytes. `declared` holds the declarations that TrialResult::benign counts.
void AddTrials(std::span<const TrialResult* const> trials, const Reproduction& reproduction, std::span<const Benign> declared,
               Groups* groups, report::Run* run, const Fewer& fewer = {});

// Adds what is wrong without any fault. Violations become findings; objects left at exit become notes, unless nothing may stay.
void AddFaultFree(const Observation& run_seen, const Reproduction& reproduction, SiteTexts* sites, Groups* groups, report::Run* run,
                  const JudgeOptions& options = {});
// Adds entries that have no fault.
void AddFaultFree(const std::vector<TrialFindingText>& findings, const std::vector<TrialFindingText>& notes,
                  const Reproduction& reproduction, Groups* groups, report::Run* run);

// Key under which findings merge into one report entry. It includes all faults of the trial.
std::uint64_t GroupOf(const TrialResult& trial, const TrialFindingText& finding, FaultKinds* kinds);

// Kernels with and without a host kernel; empty when none ran on the simulated driver.
std::optional<report::Kernels> KernelsOf(const faults::JournalView& journal);

// Notes the processes that a fault-free run left running, and what cuaudit did with them.
void AddLeftBehind(const Ending& ending, Detail became, report::Run* run);

// Fills driver, totals.calls, totals.sites and what the run could not see.
void DescribeRun(const Observation& run_seen, report::Run* run);

// Called after DescribeRun for a report of one trial. Notes the host resources that the trial watched less than the fault-free run.
void DescribeHostOfTrial(const Observation& trial, report::Run* run);

// Notes the arguments, by number, whose file content is not part of the sweep's digest.
void AddOutputs(const std::set<std::size_t>& arguments, report::Run* run);

}  // namespace cuaudit::harness
