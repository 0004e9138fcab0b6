// SPDX-License-Identifier: MIT
// in_process_runner.h: runs the trials of a lifecycle in this process, each in a simulated world of its own, or on the one genuine driver.
//
//   Owns      its worlds, and what a good cycle keeps of the host. Borrows the lifecycle, its options and the names of places.
//   Threads   one thread; the steps of the lifecycle may use more.
//   Errors    Status: the lifecycle fails without any fault, there is no world, or host faults cannot be made.
//
// A trial runs without call stacks first (trial_evidence.h). Only repeats show what a trial keeps of the host (README.md), so the trial is
// repeated after it was judged.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/lifecycle/host_change.h"
#include "harness/lifecycle/isolation.h"
#include "harness/lifecycle/trial_evidence.h"
#include "harness/lifecycle/trial_world.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/runners/runner.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

class InProcessRunner final : public Runner {
 public:
  // With `host_faults` the plan refuses allocations or threads of the host.
  InProcessRunner(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, std::vector<Benign> benign, bool host_faults,
                  SiteTexts* sites);

  Result<Rehearsal> Rehearse();
  Status Give(std::vector<TrialOrder> orders) override;
  Result<TrialSeen> Next() override;
  Status Repeat(TrialResult* trial) override;
  bool idle() const noexcept override { return orders_.empty(); }
  int interrupted() const noexcept override { return StopSignals::Seen(); }
  bool repeats_exactly() const noexcept override { return repeats_exactly_; }

  // The driver in words; empty before Rehearse opened it.
  std::string driver() const { return world_ == nullptr ? std::string() : world_->driver(); }
  bool genuine() const { return genuine_; }
  // An error once the genuine driver's context is lost, because no later trial of this process would be valid. `left`: trials not yet run.
  Status WhyLost(std::size_t left) const;
  // Runs the lifecycle once more under these faults, for whoever keeps the trial: its calls, with their call stacks, until the end of the
  // faulted cycle. The journal is valid until the next run.
  Result<faults::JournalView> Record(const std::vector<std::string>& faults);
  const Counted& skipped() const { return skipped_; }
  std::vector<Because> unmetered() const;

 private:
  Status SetFaults(const std::vector<std::string>& faults);
  Status CheckHostFaults() const;
  Result<Observation> RunFaultFree(TrialWorld* world, bool first);
  Metering MeteringOfRuns() const;
  // Runs the lifecycle once, in a forked process if that was asked for.
  Result<Ending> Execute(const faults::Plan& plan, Stacks stacks);
  Result<Ending> ExecuteForked(const faults::Plan& plan, Stacks stacks);

  Status KnowGoodHeap();
  Status KnowGoodByPlace();
  Status FindFaultFreeHost(std::vector<TrialFindingText>* findings);
  Status RepeatByMeters(bool balanced, std::vector<MeterFinding>* meters);
  std::vector<TrialFindingText> HostTexts(const std::vector<TrialFinding>& places);
  Status RepeatByPlace(bool blocks, bool descriptors, TrialResult* trial, std::vector<TrialFinding>* places);

  const Lifecycle& lifecycle_;
  const cuaudit::SweepOptions& options_;
  const std::vector<Benign> benign_;
  const bool host_faults_;
  const bool genuine_;
  SiteTexts* const sites_;
  std::vector<TrialWorld::Pointer> rehearsed_in_;  // their journals are the rehearsal's and must not change
  TrialWorld::Pointer world_;
  std::unique_ptr<SharedBytes> shared_trace_;  // null: trials run in this process
  std::optional<LastWords> last_words_;
  std::deque<TrialOrder> orders_;
  std::vector<faults::Fault> faults_;  // of the last trial
  faults::Plan plan_;                  // of the last trial
  TrialTrace trace_;                   // of the last run
  bool died_ = false;                  // the last trial died
  bool repeats_exactly_ = false;
  bool spotless_ = false;  // the rehearsal was spotless
  std::string grown_;      // Rehearsal::grown
  HostAudit host_;
  HostChange good_host_;          // of a good cycle, after a first cycle has done what is done once
  bool good_heap_known_ = false;  // its heap bytes are the median of several good cycles
  HostSpan good_span_;            // the same by the host drop-in, without places
  HostKept good_kept_;
  std::optional<HostKept> good_by_place_;
  bool host_stacks_ = false;  // whether the next runs take host stacks
  Counted skipped_;
};

}  // namespace cuaudit::harness
