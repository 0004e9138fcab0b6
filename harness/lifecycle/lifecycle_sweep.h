// SPDX-License-Identifier: MIT
// lifecycle_sweep.h: all trials of one lifecycle in this process, each in a simulated world of its own.
//
//   Owns      rehearsal, plan and results of one sweep; borrows the lifecycle.
//   Threads   one thread.
//   Errors    what makes a sweep impossible becomes Audit::message with outcome Error or NotExercised.
//   Faults    makes no driver calls but the lifecycle's.
//
// A trial is run without call stacks first and is done when it is spotless: everything released, nothing wrong, reported, recovered. Only
// what is not is run again with stacks and judged. Where the fault-free run itself leaves something, every trial is run with stacks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "harness/lifecycle/host_change.h"
#include "harness/lifecycle/host_loss.h"
#include "harness/lifecycle/isolation.h"
#include "harness/lifecycle/trial_text.h"
#include "harness/lifecycle/trial_world.h"
#include "harness/sweep/observation.h"
#include "harness/sweep/unwinding.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

class LifecycleSweep {
 public:
  LifecycleSweep(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, Audit* audit);
  // Rehearses, plans and runs everything; `only`: the faults of the one trial to run, empty: all.
  void Run(const std::vector<std::string>& only);

 private:
  using Faults = std::vector<std::string>;  // of one trial, as texts, in the order in which they fire

  Status Rehearse();
  Status Plan(std::vector<Faults>* trials);
  // Adds to `next` what the trial may do wrong on its way back; null: nobody asks.
  Status RunTrial(const Faults& faults, std::vector<Faults>* next);
  void PlanUnwinding(const Faults& faults, const Ending& ending, std::vector<Faults>* next);
  // What the trial kept of the host beyond a good cycle, and keeps each time it is run again. Adds findings; `said` is the verdict so far.
  Status JudgeHost(const Faults& faults, const PlannedFaultList& planned, const faults::Plan& plan, Verdict* said);
  // By the host drop-in: where it is kept, each time. Runs the trial again, with its stacks.
  Status RepeatByPlace(const faults::Plan& plan, bool blocks, bool descriptors, std::vector<TrialFinding>* places);
  Status GoodByPlace();  // good_by_place_
  Status JudgeFaultFreeHost();
  // What the plan may refuse of the host is counted in the rehearsal. Errors where nothing can be refused.
  Status CheckHostFaults(const Faults& only);
  void PlanHostFaults(std::vector<Faults>* trials);
  Metering MeteringOfRuns() const;
  // One run of the lifecycle, in a process of its own where that was asked for.
  Result<Ending> Execute(const faults::Plan& plan, Stacks stacks);
  Result<Ending> ExecuteOnce(const faults::Plan& plan, Stacks stacks);
  void Count(Verdict verdict, bool fired, const std::vector<Reason>& skipped);
  // What ends a sweep on a genuine driver: no later trial of this process could be believed.
  Status ContextLost(const Faults& faults, std::size_t left) const;
  void JudgeFaultFree();
  bool IsBenign(const faults::Fault& fault);
  void Conclude();

  const Lifecycle& lifecycle_;
  const cuaudit::SweepOptions& options_;
  Audit* audit_;
  const Prune prune_;
  TrialWorld::Pointer rehearsed_in_;  // its journal is the rehearsal's and stays as it is
  TrialWorld::Pointer world_;
  std::unique_ptr<SharedBytes> shared_trace_;  // null: trials run in this process
  TrialTrace trace_;                           // of the last run
  Observation rehearsal_;
  std::optional<Rehearsed> rehearsed_;  // of rehearsal_
  HostAudit host_;
  HostChange good_host_;  // of a good cycle, everything that is done once having been done
  HostSpan good_span_;    // the same by the host drop-in, without places
  HostKept good_kept_;
  std::optional<HostKept> good_by_place_;
  bool host_stacks_ = false;  // of the runs from now on
  bool host_faults_ = false;  // allocations or threads of the host are to be refused
  bool rehearsal_spotless_ = false;
  FirstFaults first_faults_;
  std::unordered_set<std::uint64_t> ways_tried_;  // of second and later faults: place, state and how
  std::vector<faults::Fault> benign_;             // where only: code and how mean nothing
  std::vector<bool> benign_seen_;
  FindingTexts texts_;
};

}  // namespace cuaudit::harness
