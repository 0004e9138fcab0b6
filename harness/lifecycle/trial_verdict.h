// SPDX-License-Identifier: MIT
// trial_verdict.h: the six questions asked of one trial: did the fault fire, was it reported, does the ledger balance, was every call
// disciplined, did it stay alive, does a clean cycle in the same world succeed and land on the rehearsal's ledger.
//
//   Owns      its findings; borrows journal and trace while judging.
//   Threads   values; no shared state.
//   Errors    never fails.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "faults/plan/fault.h"
#include "harness/lifecycle/trial_trace.h"
#include "harness/sweep/observation.h"
#include "harness/verdict/judge.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// A finding about what the steps answered, or about the cycle afterwards; the ledger's findings are TrialFindings.
struct StepFinding {
  Rule rule{};
  std::string detail;
  std::string kind = {};  // of a resource of the host
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// The first cycle of a run as one observation: the journal has its calls only, the ledger is that of its end. What was there before is
// nobody's leak.
Observation Observe(const faults::JournalView& journal, const TrialTrace& trace, const Ending& ending);

struct TrialVerdict {
  Verdict verdict = Verdict::NotExercised;
  bool fired = false;  // every fault
  Site fault_site;     // of the first
  std::uint64_t fault_key = 0;
  std::vector<TrialFinding> findings;
  std::vector<std::string> details;  // one per finding where there is more to say; may be shorter
  std::vector<TrialFinding> notes;
  std::vector<StepFinding> step_findings;
  std::vector<Reason> skipped;  // checks that could not be made
};

// What is left or wrong in a run, whatever a rehearsal says; needs no call stacks.
enum class Balance : std::uint8_t {
  Spotless,
  ReleaseRefused,  // of the first cycle, and nothing else
  Upset,
};
Balance BalanceOf(const faults::JournalView& journal, const TrialTrace& trace);

// One fault of a trial, and whether the case declares that it may be absorbed.
struct PlannedFault {
  faults::Fault fault;
  bool benign = false;
};
using PlannedFaultList = std::vector<PlannedFault>;

// Reporting alone, as far as it needs no ledger. Without a rehearsal and the trial beside it (null) nobody knows whether a call that was
// refused was made good.
std::vector<StepFinding> JudgeReporting(const Lifecycle& lifecycle, const PlannedFaultList& faults, const Rehearsed* rehearsal,
                                        const Evidence* trial, const faults::JournalView& journal, const TrialTrace& trace,
                                        std::vector<Reason>* skipped);

bool AllFired(const faults::JournalView& journal, std::size_t faults);

// The verdict of a trial about which nothing more is to be said; none when it must be judged. `rehearsal` was spotless.
std::optional<Verdict> Screen(const Lifecycle& lifecycle, const PlannedFaultList& faults, const faults::JournalView& journal,
                              const TrialTrace& trace, std::vector<Reason>* skipped);

// `rehearsal` was taken with call stacks, and so was the trial.
TrialVerdict JudgeTrial(const Lifecycle& lifecycle, const PlannedFaultList& faults, const Rehearsed& rehearsal,
                        const faults::JournalView& journal, const TrialTrace& trace, const Ending& ending);

// Violations of a run without faults.
std::vector<TrialFinding> CompareFaultFree(const Observation& run);

// "init returned CUDA_ERROR_OUT_OF_MEMORY", "work threw: bad alloc"; empty when no step failed.
std::string FirstFailure(const CycleTrace& cycle);

}  // namespace cuaudit::harness
