// SPDX-License-Identifier: MIT
// sweep_engine.h: all trials of one case, round after round: first every first fault, then every fault while unwinding from one.
//
//   Owns      its work directory's plan and log, the rehearsal and the results; of a journal nothing is kept once it is judged.
//   Threads   one thread; what runs at a time is the runner's.
//   Errors    Status: the directory holds another plan, a trial cannot be run. What finished stays in the log, and a sweep in the same
//             directory goes on from there.
//   Faults    makes no driver calls.
//
// A round is given to the runner whole. The next one is made when the last trial of a round has finished, from what all its trials
// wrote down about their unwinding, in the order of the plan: so plan and report depend on that order only, never on who finished first.
// Where the calls of a program have no order that holds (its fault-free runs differ, or several threads make calls), faults are addressed
// by call stack and turn there, so that each hits the place it was planned for whoever comes first; and a trial is judged beside the
// fault-free run that explains most of it. A fault that hit another place than in the rehearsal, or none at all, is tried again, up to six
// times, by site up to twelve; that is counted.
//
// After the last round each finding of several faults is shrunk, in rounds of its own: every list one step smaller (shrink.h) is looked up
// among the trials or run, and the smallest that shows the same finding takes its place, until none does.
//
// Prepare, then Step until Finished, then Report.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "harness/sweep/aggregate.h"
#include "harness/sweep/benign.h"
#include "harness/sweep/coverage.h"
#include "harness/sweep/make_plan.h"
#include "harness/sweep/rehearsal.h"
#include "harness/sweep/runner.h"
#include "harness/sweep/trial_log.h"
#include "harness/sweep/unwinding.h"
#include "harness/sweep/work_dir.h"

namespace cuaudit::harness {

struct SweepOptions {
  PlanOptions plan;
  JudgeOptions judge;
  int depth = 2;                                   // 1: first faults only
  bool shrink = true;                              // look for the fewest faults of each finding
  std::vector<Benign> benign;                      // faults that the program may absorb
  std::optional<std::uint64_t> coverage_at_least;  // tenths of a percent
};

// A trial of the plan. Lists that begin alike share the trial of what they have in common.
struct PlannedTrial {
  std::vector<std::string> faults;   // in the order in which they fire
  std::vector<std::uint64_t> sites;  // one per fault, 0: any
  bool shrinks = false;              // run to shrink another one's finding: no trial of the sweep
};

class SweepEngine {
 public:
  // `dir` null: nothing is written and nothing can be gone on with. `sites`: the names of places, kept from sweep to sweep.
  SweepEngine(Runner* runner, const WorkDir* dir, const SweepOptions& options, const Reproduction& reproduction, SiteTexts* sites);

  // `subject`: what two sweeps must share to go on with each other's trials (SubjectHash).
  Status Prepare(Rehearsal rehearsal, std::uint64_t subject);
  // The sweep is this one trial.
  Status PrepareOne(Rehearsal rehearsal, std::vector<std::string> faults);
  bool prepared() const noexcept { return rehearsal_.has_value(); }
  bool Finished() const noexcept { return finished_; }
  Status Step();  // waits for one trial

  std::size_t total() const noexcept { return plan_.size(); }  // grows with each round
  std::size_t trials() const noexcept {                        // the same without what only shrinks another one's finding
    return static_cast<std::size_t>(std::count_if(plan_.begin(), plan_.end(), [](const PlannedTrial& one) { return !one.shrinks; }));
  }
  bool plans_more() const noexcept { return round_ < options_.depth; }  // second faults are planned when the first ones are done
  std::size_t done() const noexcept { return results_.size(); }
  std::size_t resumed() const noexcept { return resumed_; }
  int round() const noexcept { return round_; }
  const Rehearsal& rehearsal() const noexcept { return *rehearsal_; }

  // mode, outcome, driver, totals, findings and notes; the caller adds what it knows of the command. Before Finished: of the trials so far,
  // without an outcome.
  void Report(report::Run* run);

 private:
  Status LoadOrWritePlan(PlannedFaults first, std::uint64_t subject);
  Status TakeLogged(std::size_t from);
  Status BeginRounds();
  Status GiveRound(std::size_t from);
  bool PlanNext();  // false: nothing is left to do
  void Claim(std::size_t index, Unwinding* unwinding);
  void PlanUnwinding();
  void PlanShrinking();
  void FindShrinkable();
  void TakeShrunk();
  void ReportBenign(Groups* groups, report::Run* run) const;
  void TakeRehearsal(Rehearsal rehearsal);
  TrialOrder OrderOf(std::size_t index) const;
  TrialResult Judged(const TrialSeen& one);
  void Keep(TrialResult trial);
  int AttemptOf(std::size_t index) const;  // the one that runs or comes next
  bool RoundDone() const noexcept { return results_.size() == plan_.size(); }
  CallStates CallsToPlan();
  void ReportDrift(Groups* groups, report::Run* run);
  report::Acquired SiteInWords(std::uint64_t site);

  Runner* const runner_;
  const WorkDir* const dir_;
  const SweepOptions options_;
  const Reproduction reproduction_;
  SiteTexts* const sites_;
  std::optional<Rehearsal> rehearsal_;
  std::vector<Rehearsed> rehearsed_;  // the runs of rehearsal_, the first one first
  FirstFaults first_faults_;
  std::vector<PlannedTrial> plan_;
  std::size_t possible_ = 0;
  Tally skipped_;
  Tally pruned_;
  std::optional<TrialLog> log_;
  std::map<std::size_t, TrialResult> results_;
  std::map<std::size_t, std::vector<TrialResult>> strays_;  // attempts that missed, in order
  std::size_t resumed_ = 0;
  // A finding that may need fewer faults, and all findings like it.
  struct Shrinking {
    std::size_t trial = 0;
    std::size_t finding = 0;
    std::size_t least = 0;  // the trial with the fewest faults so far
    std::vector<std::size_t> tries;
    bool settled = false;
  };
  std::unordered_map<std::uint64_t, std::size_t> claims_;  // of this round: way and state -> the first trial known to lead there
  std::vector<Shrinking> shrinking_;
  std::unordered_map<std::uint64_t, std::size_t> shrinking_by_group_;
  std::unordered_map<std::uint64_t, std::size_t> trial_of_faults_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> trials_of_way_;  // of one fault, by its place, error and way
  Places first_sites_;                                                         // of the fault-free runs
  CoverageTable coverage_;
  bool shrinks_ = false;
  int round_ = 1;
  bool finished_ = false;
  bool single_ = false;   // PrepareOne
  bool by_site_ = false;  // the calls of the case have no order that holds, and call stacks are there
};

}  // namespace cuaudit::harness
