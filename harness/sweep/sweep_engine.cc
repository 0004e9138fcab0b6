// SPDX-License-Identifier: MIT
#include "harness/sweep/sweep_engine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "harness/sweep/plan_file.h"

namespace cuaudit::harness {
namespace {

// A trial that retries for ever must not fill the disk before its deadline.
std::size_t TrialCapacity(const Subject& subject, const Observation& rehearsal) {
  const std::size_t roomy = std::max<std::size_t>(1U << 16, 8 * rehearsal.journal.records().size());
  return std::min(subject.record_capacity, roomy);
}

void SetOutcome(report::Run* run) {
  if (!run->findings.empty()) {
    run->outcome = "findings";
  } else if (run->totals.fired == 0) {
    run->outcome = "not_exercised";
    run->message = run->totals.trials == 0 ? "not exercised: no call of the program can be made to fail"
                                           : "not exercised: no fault fired, the program did not make those calls again";
  } else {
    run->outcome = "clean";
  }
}

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

SweepEngine::SweepEngine(const Subject& subject, const WorkDir& dir, const SweepOptions& options, const Reproduction& reproduction)
    : subject_(subject), dir_(dir), options_(options), reproduction_(reproduction) {}

Status SweepEngine::Prepare() {
  Status usable = CheckPlanOptions(options_.plan);
  if (!usable.ok()) return usable;
  Result<Rehearsal> rehearsal = Rehearse(subject_, dir_, 2, &interrupted_);
  if (!rehearsal.ok()) return rehearsal.status();
  rehearsal_ = std::move(*rehearsal);
  trial_records_ = TrialCapacity(subject_, rehearsal_->run);
  PlannedFaults planned = MakePlan(rehearsal_->run.journal, options_.plan);
  plan_ = std::move(planned.faults);
  skipped_ = std::move(planned.skipped);
  return LoadOrWritePlan();
}

Status SweepEngine::LoadOrWritePlan() {
  PlanFile plan;
  plan.subject = SubjectHash(subject_, *rehearsal_, options_.judge);
  plan.faults = plan_;
  const std::string path = dir_.File("plan.txt");
  struct stat facts = {};
  if (stat(path.c_str(), &facts) == 0) {
    const Result<std::string> text = ReadFile(path);
    if (!text.ok()) return text.status();
    const Result<PlanFile> before = ParsePlan(*text, path);
    if (!before.ok()) return before.status();
    if (before->Digest() != plan.Digest()) {
      return {Exit::Usage, path + ": holds the plan of another sweep (digest " + Hex(before->Digest()) + ", this one has " +
                               Hex(plan.Digest()) + "): choose another --work-dir"};
    }
  } else {
    Status written = WriteFile(path, FormatPlan(plan), Exit::Usage);
    if (!written.ok()) return written;
  }
  Result<TrialLog> log = TrialLog::Open(dir_.File("trials.jsonl"), plan_);
  if (!log.ok()) return log.status();
  log_ = std::move(*log);
  for (TrialResult& trial : log_->trials()) {
    const std::size_t index = trial.index;
    results_.emplace(index, std::move(trial));
  }
  resumed_ = results_.size();
  pool_.emplace();
  return {};
}

Status SweepEngine::StartTrial(std::size_t index) {
  const std::string name = TrialName(index);
  const std::vector<std::string> faults = {plan_[index]};
  const Result<Launch> launch =
      PrepareRun(subject_, name + ".journal", trial_records_, faults, options_.keep ? name + ".log" : std::string("/dev/null"));
  if (!launch.ok()) return launch.status();
  return pool_->Start(index, *launch);
}

Status SweepEngine::Step() {
  while (pool_->size() < options_.jobs && next_ < plan_.size()) {
    const std::size_t index = next_++;
    if (results_.contains(index)) continue;
    Status started = StartTrial(index);
    if (!started.ok()) return started;
  }
  if (pool_->size() == 0) return {};
  const Result<ProcessPool::Ended> ended = pool_->WaitAny();
  if (!ended.ok()) return ended.status();

  const std::string journal = TrialName(ended->tag) + ".journal";
  const Result<Observation> seen = ReadObservation(journal, ended->ending);
  if (!seen.ok()) return {Exit::Failure, seen.status().message()};
  Result<TrialResult> trial = JudgeTrial(ended->tag, {plan_[ended->tag]}, rehearsal_->run, *seen, options_.judge, &sites_);
  if (!trial.ok()) return trial.status();
  if (!options_.keep) unlink(journal.c_str());
  Status logged = log_->Append(*trial);
  if (!logged.ok()) return logged;
  results_.emplace(ended->tag, std::move(*trial));
  return {};
}

void SweepEngine::Report(report::Run* run) {
  run->mode = "sweep";
  DescribeRun(rehearsal_->run, run);
  for (const auto& [reason, count] : skipped_) run->totals.skipped[reason] += count;
  if (rehearsal_->drifting) {
    run->totals.skipped["drifting: faults are addressed by count"] = 1;
    report::Finding note;
    note.rule = "drifting";
    note.title = "two fault-free runs differ, so the n-th call may be another one in each trial";
    note.where = rehearsal_->drift;
    TrialFindingText text;
    text.rule = note.rule;
    note.fingerprint = Fingerprint(text, std::nullopt, 0);
    note.reproduce = ReproduceLine(reproduction_, {});
    run->notes.push_back(std::move(note));
  }
  AddFaultFree(rehearsal_->run, reproduction_, &sites_, run);
  std::vector<TrialResult> in_order;
  in_order.reserve(results_.size());
  for (const auto& [index, trial] : results_) in_order.push_back(trial);
  AddTrials(in_order, reproduction_, run);
  SetOutcome(run);
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
  const Result<TrialResult> trial = JudgeTrial(0, faults, rehearsal->run, *seen, judge, &sites);
  if (!trial.ok()) return trial.status();
  run->mode = "replay";
  DescribeRun(rehearsal->run, run);
  AddTrials({&*trial, 1}, reproduction, run);
  SetOutcome(run);
  return {};
}

}  // namespace cuaudit::harness
