// SPDX-License-Identifier: MIT
// sweep_engine.h: carries out all trials of one case in rounds: first all first faults, then the faults while unwinding from each of them.
//
//   Owns      plan and log in the work directory, the rehearsal and the results. Journals are dropped once they are judged.
//   Threads   one thread; the runner decides what runs at the same time.
//   Errors    Status: the directory holds another plan, or a trial cannot be run. Finished trials stay in the log, and a sweep in the same
//             directory continues from there.
//
// README.md ("Which faults are tried") says what each round has.
//
// After the last round each finding of several faults is shrunk in extra rounds: all lists one step smaller are looked up or
// run, and the smallest list that shows the same finding replaces it, until none does.
//
// When one trial of each place is to come first, a round is given to the runner in turns. With what an earlier sweep has tried (`before`)
// new places come before changed ones and those before known ones, in second faults, too. The order changes no result.
//
// Trials of a round do not depend on each other, so a round may be cut into shards, each run by an engine of its own (PrepareShard). What
// they find is given to an engine that goes on from there (Know), as if it had run all of them itself.
//
// Call Prepare, then Step until Finished, then Report.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/process/work_dir.h"
#include "harness/sweep/findings/aggregate.h"
#include "harness/sweep/findings/benign.h"
#include "harness/sweep/findings/coverage.h"
#include "harness/sweep/plan/make_plan.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/run/after_fault.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/run/unwinding.h"
#include "harness/sweep/runners/runner.h"
#include "harness/sweep/trial_log.h"
#include "reports/trials_writer.h"

namespace cuaudit::harness {

struct EngineOptions {
  PlanOptions plan;
  JudgeOptions judge;
  int depth = 2;                                   // 1: first faults only
  bool shrink = true;                              // look for the fewest faults of each finding
  std::vector<Benign> benign;                      // faults that the program may absorb
  std::optional<std::uint64_t> coverage_at_least;  // tenths of a percent
  bool tell_calls = true;                          // the report has the calls of the fault-free run, and the way back of each defect
  bool places_first = false;                       // one trial of each place is run before other first faults
  std::optional<TriedBefore> before;               // with places_first: places that an earlier sweep did not try come first
};

// Hash of the options that decide which trials are planned and how they are judged, and of `subject` (SubjectHash): two sweeps must share
// it to continue each other.
[[nodiscard]] std::uint64_t OptionsHash(const EngineOptions& options, std::uint64_t subject);

// True when the directory holds the plan of this sweep, so that the sweep can continue with the fault-free runs behind that plan.
bool HoldsPlanOf(const WorkDir& dir, const EngineOptions& options, std::uint64_t subject);

// An error when the directory holds a plan that was begun with other settings. It says which ones differ.
Status CheckSettings(const WorkDir& dir, const Settings& settings);

// A trial of the plan. Lists with the same beginning build on the same earlier trial.
struct PlannedTrial {
  std::vector<std::string> faults;   // in the order in which they fire
  std::vector<std::uint64_t> sites;  // one per fault; 0: any
  bool shrinks = false;              // only run to shrink another finding; not counted as a trial of the sweep
  std::size_t after = 0;             // number of the trial without the last fault
};

// True when more than one call fails: there are several faults, or one fault hits several calls.
bool CanShrink(const std::vector<std::string>& faults);

// All lists of faults that are one step smaller and may show the same finding, the smallest step first: without one of the faults, with a
// shorter burst (the shortest first), or with a single refusal instead of `persist`. Lists of two or three faults need no halving.
std::vector<PlannedTrial> SmallerLists(const PlannedTrial& list);

class SweepEngine {
 public:
  // With `dir` null nothing is written and nothing can be continued. `sites` keeps the names of places from sweep to sweep.
  SweepEngine(Runner* runner, const WorkDir* dir, const EngineOptions& options, const Reproduction& reproduction, SiteTexts* sites);

  // `subject` is the SubjectHash that two sweeps must share to continue each other's trials. So they must share the `settings`.
  Status Prepare(Rehearsal rehearsal, std::uint64_t subject, Settings settings = {});
  // Gives the faults of the first round to `sink`, for a plan, and answers how many there are: nothing is prepared.
  Result<std::uint64_t> ListFirstFaults(Rehearsal rehearsal, const FaultSink& sink);
  // Prepares some trials of one round, as another machine has planned them. Their numbers count from 0, and no round follows.
  Status PrepareShard(Rehearsal rehearsal, std::vector<PlannedTrial> trials, int round);
  // Called before Prepare: trials of any rounds that others have finished. Unless `whole`, some of a round may be missing; then those of
  // later rounds are of no use.
  void Know(std::vector<TrialResult> finished, bool whole);
  // Prepares a sweep of this single trial.
  Status PrepareOne(Rehearsal rehearsal, std::vector<std::string> faults);
  bool prepared() const noexcept { return rehearsal_.has_value(); }
  bool Finished() const noexcept { return finished_; }
  Status Step();  // waits for one trial
  // Ends the sweep with the trials that have ended. What was planned, and second faults that would be, are counted as left out.
  void EndHere(Reason why = Reason::OverBudget);

  std::size_t total() const noexcept { return plan_.size(); }  // grows with each round
  std::size_t trials() const noexcept {                        // without the trials that only shrink
    return static_cast<std::size_t>(std::count_if(plan_.begin(), plan_.end(), [](const PlannedTrial& one) { return !one.shrinks; }));
  }
  const std::vector<PlannedTrial>& plan() const noexcept { return plan_; }
  bool plans_more() const noexcept { return round_ < options_.depth; }  // second faults are planned after the first ones
  std::size_t done() const noexcept { return results_.size(); }
  // The first trial that finished with a finding; null while there is none. Which one that is may differ from run to run.
  const TrialResult* first_found() const { return first_found_.has_value() ? &results_.at(*first_found_) : nullptr; }
  bool found_before() const noexcept { return found_before_; }  // first_found() is a trial of an earlier sweep
  std::size_t resumed() const noexcept { return resumed_; }     // of trials(), those of an earlier sweep
  bool PlacesTried() const;                                     // each place has failed once at least, in the trials that have ended
  // True once one trial of each new and each changed place has ended, or when nobody said what was tried before.
  bool NewPlacesDone() const noexcept { return round_ > 1 || turn_ >= TurnOf(Novelty::Known, false); }
  std::size_t NewPlacesUntried() const;  // new or changed places of the plan at which no trial has ended
  int round() const noexcept { return round_; }
  const Rehearsal& rehearsal() const noexcept { return *rehearsal_; }
  const std::map<std::size_t, TrialResult>& results() const noexcept { return results_; }  // of the trials that have ended
  bool OnlyShrinks(std::size_t trial) const noexcept { return trial < plan_.size() && plan_[trial].shrinks; }

  // Fills mode, outcome, driver, totals, findings and notes; the caller adds what it knows of the command. Before Finished it reports the
  // trials so far, without an outcome.
  void Report(report::Run* run);
  // The trials that have ended, in the order of the plan, without those that only look for fewer faults of a finding.
  std::vector<report::TrialRow> Rows() const;

 private:
  Status LoadOrWritePlan(PlannedFaults first, std::uint64_t subject, Settings settings);
  Status TakeLogged(std::size_t from);
  Status BeginRounds();
  Status GiveRound(std::size_t from);
  Status GiveTurn();
  // The turn of a trial in its round; `later`: another trial of its place comes before it.
  static constexpr std::size_t TurnOf(Novelty novelty, bool later) {
    return static_cast<std::size_t>(novelty) + (later ? static_cast<std::size_t>(Novelty::Known) + 1 : 0);
  }
  using PlaceKey = std::pair<std::uint64_t, std::string>;  // site and entry point: calls without a call stack have the site 0
  static PlaceKey PlaceOf(const PlannedTrial& one);
  void CompareWithBefore();
  Novelty NoveltyOf(const PlannedTrial& one) const;
  bool PlanNext();  // false: nothing is left to do
  bool IsClaimed(std::size_t index, const NextFault& next);
  void Claim(std::size_t index, Unwinding* unwinding);
  // A second fault that is possible.
  struct Second {
    std::size_t after = 0;    // number of the trial with the faults before it
    std::uint64_t shape = 0;  // 0: nothing stands for it
    std::uint64_t way = 0;    // way to fail and step of the shape: faults with equal ways may stand for each other
    NextFault fault;
  };
  // A second fault that was planned.
  struct TriedWay {
    std::uint64_t way = 0;
    std::size_t trial = 0;
  };
  // The second faults of all unwindings of one shape (unwinding.h).
  struct Shape {
    std::vector<TriedWay> tried;    // those that fire stand for the others of the same way
    std::vector<TriedWay> samples;  // check that they may
    std::vector<Second> stood_for;  // not planned
  };
  std::vector<Second> SecondFaults();
  void PlanUnwinding();
  bool PlanSecond(const Second& one);
  bool PlanSeconds(std::vector<Second> seconds);
  bool LimitReached() const noexcept { return options_.plan.limit != 0 && plan_.size() >= options_.plan.limit; }
  bool Fired(const TriedWay& one) const { return results_.at(one.trial).fired; }
  void SettleShapes();
  void TakeStandIns(Shape* shape, std::vector<Second>* stand_ins) const;
  bool HidesSomething(const Shape& shape) const;
  bool PlanShrinking();
  void FindShrinkable();
  void TakeShrunk();
  void ShrinkByWhatIsKnown();
  void ReportBenign(Groups* groups, report::Run* run) const;
  void TakeRehearsal(Rehearsal rehearsal);
  PlannedFaults TakeFirstFaults();
  TrialOrder OrderOf(std::size_t index) const;
  TrialResult Judged(const TrialSeen& one);
  void Keep(TrialResult trial);
  int AttemptOf(std::size_t index) const;  // the attempt that runs or comes next
  bool RoundDone() const noexcept { return results_.size() == plan_.size(); }
  CallStates CallsToPlan();
  void ReportDrift(Groups* groups, report::Run* run);
  report::Acquired SiteInWords(std::uint64_t site);

  Runner* const runner_;
  const WorkDir* const dir_;
  const EngineOptions options_;
  const Reproduction reproduction_;
  SiteTexts* const sites_;
  std::optional<Rehearsal> rehearsal_;
  std::vector<Rehearsed> rehearsed_;     // of rehearsal_, the first run first
  std::optional<FaultFreeCalls> calls_;  // only when the report tells them
  AfterFaults after_faults_;
  FirstFaults first_faults_;
  std::vector<PlannedTrial> plan_;
  std::size_t possible_ = 0;
  Tally skipped_;
  Tally pruned_;
  std::optional<TrialLog> log_;
  std::map<std::size_t, TrialResult> results_;
  std::map<std::size_t, std::vector<TrialResult>> strays_;  // attempts that missed, in order
  std::size_t resumed_ = 0;
  std::optional<std::size_t> first_found_;
  bool found_before_ = false;
  // A finding that may need fewer faults, and all findings like it.
  struct Shrinking {
    std::size_t trial = 0;
    std::size_t finding = 0;
    std::size_t least = 0;  // the trial with the fewest faults so far
    std::vector<std::size_t> tries;
    bool settled = false;
  };
  std::unordered_map<std::uint64_t, std::size_t> claims_;  // in this round: way and state to the first trial known to lead there
  std::map<std::uint64_t, Shape> shapes_;                  // of this round
  std::vector<Shrinking> shrinking_;
  std::unordered_map<std::uint64_t, std::size_t> shrinking_by_group_;
  std::unordered_map<std::uint64_t, std::size_t> trial_of_faults_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> trials_of_way_;  // trials of one fault, by place, error and way
  Places first_sites_;                                                         // of the fault-free runs
  std::vector<std::unordered_map<std::uint64_t, Site>> sites_of_rehearsed_;    // made when the report asks for the first one
  CoverageTable coverage_;
  bool shrinks_ = false;
  int round_ = 1;
  bool finished_ = false;
  Reason ended_here_ = Reason::None;                        // by EndHere
  std::map<std::size_t, std::vector<TrialOrder>> waiting_;  // by turn: what the runner gets when earlier turns of this round are back
  std::size_t turn_ = 0;                                    // what the runner has got last
  std::map<PlaceKey, Novelty> novelties_;                   // of first faults; empty: all are new
  bool single_ = false;                                     // prepared by PrepareOne
  bool shard_ = false;                                      // prepared by PrepareShard
  std::vector<TrialResult> known_;                          // by Know, until Prepare
  bool known_whole_ = true;
  std::optional<Observation> seen_;  // of the single trial
  bool by_site_ = false;             // faults are addressed by call stack
};

// Plans which host allocations and threads fail, one trial each (--how host_oom,host_thread): appends a fault for each allocation of the
// rehearsal's first process and then for each thread, in their order, until `plan` holds options.limit faults. Only ways in options.hows
// are planned. What is left out is counted by reason.
void AppendHostFaults(const Rehearsal& rehearsal, const PlanOptions& options, PlannedFaults* plan);

}  // namespace cuaudit::harness
