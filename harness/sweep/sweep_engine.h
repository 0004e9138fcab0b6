// SPDX-License-Identifier: MIT
// sweep_engine.h: all first-order trials of one unmodified program, each in a process of its own.
//
//   Owns      its work directory's plan, journals and log, the rehearsal and the running trials.
//   Threads   one thread; `jobs` processes at a time.
//   Errors    Status: the rehearsal is unfit, the directory holds another plan, a trial cannot be run. What finished stays in the log, and
//             a sweep in the same directory goes on from there.
//   Faults    makes no driver calls.
//   Source    design section 7.
//
// A fault whose n-th call came from another place than in the rehearsal, or not at all, is tried again, up to six times.
// Prepare, then Step until Finished, then Report. The report depends on the plan's order only, never on who finished first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/aggregate.h"
#include "harness/sweep/make_plan.h"
#include "harness/sweep/process.h"
#include "harness/sweep/rehearsal.h"
#include "harness/sweep/trial_log.h"
#include "harness/sweep/work_dir.h"

namespace cuaudit::harness {

struct SweepOptions {
  PlanOptions plan;
  JudgeOptions judge;
  std::size_t jobs = 1;
  bool keep = false;  // journals and outputs of the trials stay in the work directory
};

class SweepEngine {
 public:
  SweepEngine(const Subject& subject, const WorkDir& dir, const SweepOptions& options, const Reproduction& reproduction);

  Status Prepare();
  bool Finished() const noexcept { return results_.size() == plan_.size(); }
  Status Step();  // starts what may run and waits for one trial

  std::size_t total() const noexcept { return plan_.size(); }
  std::size_t done() const noexcept { return results_.size(); }
  std::size_t resumed() const noexcept { return resumed_; }
  const Rehearsal& rehearsal() const noexcept { return *rehearsal_; }
  int interrupted() const noexcept { return interrupted_ != 0 || !pool_.has_value() ? interrupted_ : pool_->interrupted(); }

  // mode, outcome, driver, totals, findings and notes; the caller adds what it knows of the command.
  void Report(report::Run* run);

 private:
  Status LoadOrWritePlan();
  Status StartTrial(std::size_t index);
  void Keep(TrialResult trial);
  int AttemptOf(std::size_t index) const;  // the one that runs or comes next
  std::string TrialName(std::size_t index) const;
  report::Acquired PlannedSite(std::uint64_t site);

  const Subject& subject_;
  const WorkDir& dir_;
  const SweepOptions options_;
  const Reproduction reproduction_;
  std::optional<ProcessPool> pool_;  // from the end of Prepare, so that the rehearsals' own pool sees the signals as they were
  SiteTexts sites_;
  std::optional<Rehearsal> rehearsal_;
  std::vector<std::string> plan_;
  std::vector<std::uint64_t> planned_sites_;  // one per fault
  std::size_t possible_ = 0;
  std::map<std::string, std::uint64_t> skipped_;
  std::optional<TrialLog> log_;
  std::map<std::size_t, TrialResult> results_;
  std::map<std::size_t, std::vector<TrialResult>> strays_;  // attempts that missed, in order
  std::size_t resumed_ = 0;
  std::size_t next_ = 0;
  std::size_t trial_records_ = 0;
  int interrupted_ = 0;
};

// What two sweeps must share to go on with each other's trials.
std::uint64_t SubjectHash(const Subject& subject, const Rehearsal& rehearsal, const JudgeOptions& judge);

// One trial under `faults`, beside a single rehearsal; fills the report like a sweep of one.
Status Replay(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults, const JudgeOptions& judge,
              const Reproduction& reproduction, report::Run* run, int* interrupted);

}  // namespace cuaudit::harness
