// SPDX-License-Identifier: MIT
#include "harness/sweep/sweep_engine.h"

#include <sys/stat.h>

#include <utility>

#include "harness/sweep/outcome.h"
#include "harness/sweep/plan_file.h"
#include "harness/sweep/spawn_runner.h"

namespace cuaudit::harness {
namespace {

// How often a trial is run until its fault hits the place that it was planned for.
constexpr int kAttempts = 6;

// What decides which trials a plan leads to.
std::uint64_t OptionsHash(const SweepOptions& options, std::uint64_t hash) {
  hash = HashNumber(static_cast<std::uint64_t>(options.depth), hash);
  hash = HashNumber(options.plan.prune ? 1 : 0, hash);
  return HashNumber(options.plan.limit, hash);
}

// One way to fail at one place in one state: what comes after '#n' in the text is code and how.
std::uint64_t WayAt(const NextFault& next) { return HashText(next.fault.substr(next.fault.find('=')), HashNumber(next.state, kHashSeed)); }

}  // namespace

std::uint64_t SubjectHash(const Subject& subject, const Rehearsal& rehearsal, const JudgeOptions& judge) {
  std::uint64_t hash = kHashSeed;
  for (const std::string& word : subject.command) hash = HashText(word, hash);
  hash = HashText(OptionsText(subject.launch, "", {}), hash);
  hash = HashNumber(subject.launch.stack_depth, hash);
  hash = HashNumber(subject.launch.host_probes ? 1 : 0, hash);
  hash = HashNumber(static_cast<std::uint64_t>(subject.expected_exit), hash);
  hash = HashNumber(judge.abandoned_is_leak ? 1 : 0, hash);
  // A program that never does the same twice can only be told by its command line.
  return rehearsal.drifting ? hash : HashNumber(TraceHash(rehearsal.run.journal), hash);
}

SweepEngine::SweepEngine(Runner* runner, const WorkDir* dir, const SweepOptions& options, const Reproduction& reproduction)
    : runner_(runner), dir_(dir), options_(options), reproduction_(reproduction) {}

Status SweepEngine::Prepare(Rehearsal rehearsal, std::uint64_t subject) {
  Status usable = CheckPlanOptions(options_.plan);
  if (!usable.ok()) return usable;
  rehearsal_ = std::move(rehearsal);
  const CallStates states = StatesOf(rehearsal_->run.journal, rehearsal_->run.ledger);
  if (!states.threaded) first_states_ = AllStates(states);
  PlannedFaults first = MakePlan(states, options_.plan);
  possible_ = first.possible;
  skipped_ = std::move(first.skipped);
  pruned_ = std::move(first.pruned);
  Status loaded = LoadOrWritePlan(std::move(first), OptionsHash(options_, subject));
  return loaded.ok() ? BeginRounds() : loaded;
}

Status SweepEngine::LoadOrWritePlan(PlannedFaults first, std::uint64_t subject) {
  PlanFile plan;
  plan.subject = subject;
  plan.faults = std::move(first.faults);
  plan.sites = std::move(first.sites);
  if (dir_ != nullptr) {
    const std::string path = dir_->File("plan.txt");
    struct stat facts = {};
    if (stat(path.c_str(), &facts) == 0) {
      const Result<std::string> text = ReadFile(path);
      if (!text.ok()) return text.status();
      const Result<PlanFile> before = ParsePlan(*text, path);
      if (!before.ok()) return before.status();
      if (before->subject != plan.subject || before->faults != plan.faults) {
        return {Exit::Usage, path + ": holds the plan of another sweep (digest " + Hex(before->Digest()) + ", this one has " +
                                 Hex(plan.Digest()) + "): choose another --work-dir"};
      }
      // Threads may have taken turns in another order this time: each fault stays meant for the place that its trials so far were held to.
      plan.sites = before->sites;
    } else {
      Status written = WriteFile(path, FormatPlan(plan), Exit::Usage);
      if (!written.ok()) return written;
    }
    Result<TrialLog> log = TrialLog::Open(dir_->File("trials.jsonl"));
    if (!log.ok()) return log.status();
    log_ = std::move(*log);
  }
  for (std::size_t i = 0; i < plan.faults.size(); ++i) plan_.push_back({{std::move(plan.faults[i])}, {plan.sites[i]}});
  return {};
}

// The trials from `from` on that an earlier sweep in this directory has finished.
Status SweepEngine::TakeLogged(std::size_t from) {
  if (!log_.has_value()) return {};
  for (std::size_t index = from; index < plan_.size(); ++index) {
    Result<std::vector<TrialResult>> logged = log_->Take(index, plan_[index].faults);
    if (!logged.ok()) return logged.status();
    for (TrialResult& trial : *logged) Keep(std::move(trial));
  }
  resumed_ = results_.size();
  return {};
}

// Rounds that the log holds whole are over at once; of the first one that it does not, some trials may be there, and of later ones none.
Status SweepEngine::BeginRounds() {
  std::size_t from = 0;
  for (;; ++round_) {
    Status taken = TakeLogged(from);
    if (!taken.ok()) return taken;
    if (!RoundDone()) break;
    from = plan_.size();
    if (round_ < options_.depth) PlanUnwinding();
    finished_ = plan_.size() == from;
    if (finished_) break;
  }
  Status of_the_plan = log_.has_value() ? log_->CheckTaken() : Status();
  return finished_ || !of_the_plan.ok() ? of_the_plan : GiveRound(from);
}

Status SweepEngine::GiveRound(std::size_t from) {
  std::vector<TrialOrder> orders;
  for (std::size_t index = from; index < plan_.size(); ++index) {
    if (!results_.contains(index)) orders.push_back({index, plan_[index].faults, AttemptOf(index)});
  }
  return runner_->Give(std::move(orders));
}

// The next round: every way in which the trials of this one may fail again on their way back, each place and state once.
void SweepEngine::PlanUnwinding() {
  std::unordered_set<std::uint64_t> known;
  const std::size_t end = plan_.size();
  for (std::size_t index = 0; index < end; ++index) {
    if (plan_[index].faults.size() != static_cast<std::size_t>(round_)) continue;
    Unwinding unwinding = std::move(results_.at(index).unwinding);
    results_.at(index).unwinding = Unwinding();
    for (const auto& [reason, count] : unwinding.pruned) pruned_[reason] += count;
    for (NextFault& next : unwinding.faults) {
      const bool same = options_.plan.prune && !known.insert(WayAt(next)).second;
      if (same) {
        ++pruned_["second faults at the same place and state as an earlier one"];
        continue;
      }
      ++possible_;
      if (options_.plan.limit != 0 && plan_.size() >= options_.plan.limit) {
        ++skipped_["trials beyond --limit"];
        continue;
      }
      PlannedTrial trial = plan_[index];
      trial.faults.push_back(std::move(next.fault));
      trial.sites.push_back(next.site);
      plan_.push_back(std::move(trial));
    }
  }
}

void SweepEngine::Keep(TrialResult trial) {
  const std::size_t index = trial.index;
  if (trial.stray) {
    strays_[index].push_back(std::move(trial));
  } else {
    results_.emplace(index, std::move(trial));
  }
}

int SweepEngine::AttemptOf(std::size_t index) const {
  const auto strays = strays_.find(index);
  return strays == strays_.end() ? 1 : strays->second.back().attempt + 1;
}

Status SweepEngine::Step() {
  Result<TrialSeen> one = runner_->Next();
  if (!one.ok()) return one.status();
  const PlannedTrial& planned = plan_[one->index];
  TrialResult trial = JudgeTrial(one->index, planned.faults, planned.sites, rehearsal_->run, one->seen, options_.judge, &sites_);
  trial.attempt = AttemptOf(one->index);
  const bool by_chance = trial.missed == Missed::Elsewhere || trial.missed == Missed::Unfired;
  trial.stray = by_chance && trial.attempt < kAttempts;
  if (trial.fired && round_ < options_.depth) {
    trial.unwinding = FaultsWhileUnwinding(rehearsal_->run, first_states_, one->seen, planned.faults.size(), options_.plan.prune);
  }
  if (log_.has_value()) {
    Status logged = log_->Append(trial);
    if (!logged.ok()) return logged;
  }
  const bool again = trial.stray;
  Keep(std::move(trial));
  if (again) return runner_->Give({{one->index, planned.faults, AttemptOf(one->index)}});
  if (!RoundDone()) return {};
  const std::size_t from = plan_.size();
  if (round_ < options_.depth) PlanUnwinding();
  if (plan_.size() == from) {
    finished_ = true;
    return {};
  }
  ++round_;
  return GiveRound(from);
}

// Where the last fault was to hit, if the fault-free run was ever there.
report::Acquired SweepEngine::PlannedSite(const PlannedTrial& planned) {
  const std::uint64_t site = planned.sites.back();
  const faults::JournalView& journal = rehearsal_->run.journal;
  for (const faults::Record& record : journal.records()) {
    if (record.kind != faults::RecordKind::Call || (record.flags & faults::kNested) != 0) continue;
    if (site != 0 && SiteKey(journal, RecordSite(record)) == site) return sites_.Text(journal, RecordSite(record), site);
  }
  return {};
}

void SweepEngine::Report(report::Run* run) {
  Groups groups;
  run->mode = "sweep";
  DescribeRun(rehearsal_->run, run);
  for (const auto& [reason, count] : skipped_) run->totals.skipped[reason] += count;
  for (const auto& [reason, count] : pruned_) run->totals.pruned[reason] += count;
  if (rehearsal_->drifting) {
    run->totals.skipped["drifting: faults are addressed by count"] = 1;
    report::Finding note;
    note.rule = "drifting";
    note.title = "two fault-free runs differ, so the n-th call may be another one in each trial";
    note.where = rehearsal_->drift;
    TrialFindingText text;
    text.rule = note.rule;
    note.fingerprint = groups.fingerprints.Claim(Fingerprint(text, std::nullopt));
    note.reproduce = ReproduceLine(reproduction_, {});
    run->notes.push_back(std::move(note));
  }
  AddFaultFree(rehearsal_->run, reproduction_, &sites_, &groups, run);
  std::vector<TrialResult> in_order;
  in_order.reserve(results_.size());
  for (const auto& [index, trial] : results_) {
    const auto strays = strays_.find(index);
    if (strays != strays_.end()) in_order.insert(in_order.end(), strays->second.begin(), strays->second.end());
    in_order.push_back(trial);
    if (!trial.fired) in_order.back().planned_site = PlannedSite(plan_[index]);
  }
  AddTrials(in_order, reproduction_, &groups, run);
  SetOutcome(in_order, possible_, dir_ == nullptr ? std::string("memory") : dir_->path(), run);
}

Status Replay(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults, const JudgeOptions& judge,
              const Reproduction& reproduction, report::Run* run, int* interrupted) {
  const Result<Rehearsal> rehearsal = Rehearse(subject, dir, 1, interrupted);
  if (!rehearsal.ok()) return rehearsal.status();
  const std::string name = dir.File("replay");
  const Result<Launch> launch = PrepareRun(subject, name + ".journal", TrialCapacity(subject, rehearsal->run), faults, name + ".log");
  if (!launch.ok()) return launch.status();
  const Result<Ending> ending = RunToEnd(*launch, interrupted);
  if (!ending.ok()) return ending.status();
  const Result<Observation> seen = ReadObservation(name + ".journal", *ending);
  if (!seen.ok()) return {Exit::Failure, seen.status().message()};
  SiteTexts sites;
  const TrialResult trial = JudgeTrial(0, faults, {}, rehearsal->run, *seen, judge, &sites);
  run->mode = "replay";
  DescribeRun(rehearsal->run, run);
  Groups groups;
  AddTrials({&trial, 1}, reproduction, &groups, run);
  SetOutcome({&trial, 1}, 1, dir.path(), run);
  return {};
}

}  // namespace cuaudit::harness
