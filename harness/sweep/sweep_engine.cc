// SPDX-License-Identifier: MIT
#include "harness/sweep/sweep_engine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "harness/sweep/host_plan.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/plan_file.h"

namespace cuaudit::harness {
namespace {

// How often a trial is run until its fault hits the place that it was planned for.
constexpr int kAttempts = 6;

// A trial that retries for ever must not fill the disk before its deadline. A number that the user gave is the user's to choose; the
// default, given or not, is a limit for the rehearsal.
std::size_t TrialCapacity(const Subject& subject, const Observation& rehearsal) {
  if (subject.record_capacity != faults::kDefaultRecordCapacity) return subject.record_capacity;
  const std::size_t roomy = std::max<std::size_t>(1U << 16, 8 * rehearsal.journal.records().size());
  return std::min(subject.record_capacity, roomy);
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
  AppendHostFaults(rehearsal_->run.journal, options_.plan, &planned);
  plan_ = std::move(planned.faults);
  planned_sites_ = std::move(planned.sites);
  possible_ = planned.possible;
  skipped_ = std::move(planned.skipped);
  return LoadOrWritePlan();
}

Status SweepEngine::LoadOrWritePlan() {
  PlanFile plan;
  plan.subject = SubjectHash(subject_, *rehearsal_, options_.judge);
  plan.faults = plan_;
  plan.sites = planned_sites_;
  const std::string path = dir_.File("plan.txt");
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
    planned_sites_ = before->sites;
  } else {
    Status written = WriteFile(path, FormatPlan(plan), Exit::Usage);
    if (!written.ok()) return written;
  }
  Result<TrialLog> log = TrialLog::Open(dir_.File("trials.jsonl"), plan_);
  if (!log.ok()) return log.status();
  log_ = std::move(*log);
  for (TrialResult& trial : log_->trials()) {
    Keep(std::move(trial));
  }
  resumed_ = results_.size();
  pool_.emplace();
  return {};
}

void SweepEngine::Keep(TrialResult trial) {
  const std::size_t index = trial.index;
  if (trial.stray) {
    strays_[index].push_back(std::move(trial));
  } else {
    results_.emplace(index, std::move(trial));
  }
}

std::string SweepEngine::TrialName(std::size_t index) const {
  const int attempt = AttemptOf(index);
  return dir_.File("trial-" + std::to_string(index) + (attempt == 1 ? "" : "-attempt-" + std::to_string(attempt)));
}

int SweepEngine::AttemptOf(std::size_t index) const {
  const auto strays = strays_.find(index);
  return strays == strays_.end() ? 1 : strays->second.back().attempt + 1;
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
  const std::size_t index = ended->tag;
  TrialResult trial = JudgeTrial(index, {plan_[index]}, planned_sites_[index], rehearsal_->run, *seen, options_.judge, &sites_);
  trial.attempt = AttemptOf(index);
  const bool by_chance = trial.missed == Missed::Elsewhere || trial.missed == Missed::Unfired;
  trial.stray = by_chance && trial.attempt < kAttempts;
  if (!options_.keep) unlink(journal.c_str());
  Status logged = log_->Append(trial);
  if (!logged.ok()) return logged;
  const bool again = trial.stray;
  Keep(std::move(trial));
  return again ? StartTrial(index) : Status();
}

report::Acquired SweepEngine::PlannedSite(std::uint64_t site) {
  const faults::JournalView& journal = rehearsal_->run.journal;
  for (const faults::Record& record : journal.records()) {
    const bool allocation = record.kind == faults::RecordKind::Host && record.occurrence != 0;
    if (!allocation && (record.kind != faults::RecordKind::Call || (record.flags & faults::kNested) != 0)) continue;
    if (site != 0 && SiteKey(journal, RecordSite(record)) == site) return sites_.Text(journal, RecordSite(record), site);
  }
  return {};
}

void SweepEngine::Report(report::Run* run) {
  Groups groups;
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
    if (!trial.fired) in_order.back().planned_site = PlannedSite(planned_sites_[index]);
  }
  AddTrials(in_order, reproduction_, &groups, run);
  SetOutcome(in_order, possible_, dir_.path(), run);
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
  const TrialResult trial = JudgeTrial(0, faults, 0, rehearsal->run, *seen, judge, &sites);
  run->mode = "replay";
  DescribeRun(rehearsal->run, run);
  Groups groups;
  AddTrials({&trial, 1}, reproduction, &groups, run);
  SetOutcome({&trial, 1}, 1, dir.path(), run);
  return {};
}

}  // namespace cuaudit::harness
