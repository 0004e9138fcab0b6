// SPDX-License-Identifier: MIT
#include "harness/sweep/sweep_engine.h"

#include <sys/stat.h>

#include "harness/process/files.h"
#include "harness/sweep/plan/call_state.h"
#include "harness/sweep/report_rows.h"

namespace cuaudit::harness {
namespace {

// How often a trial runs until its fault hits the planned place.
constexpr int kAttempts = 6;
// A call that only some runs reach gets more attempts.
constexpr int kAttemptsBySite = 12;

}  // namespace

std::uint64_t OptionsHash(const EngineOptions& options, std::uint64_t subject) {
  std::uint64_t hash = HashNumber(static_cast<std::uint64_t>(options.depth), subject);
  hash = HashNumber(static_cast<std::uint64_t>(options.plan.prune), hash);
  hash = HashNumber((options.judge.exit_is_said ? 1U : 0U) + (options.judge.own_orphans_count ? 2U : 0U), hash);
  for (const Benign& benign : options.benign) hash = HashText(benign.text, hash);
  for (const std::string& call : options.plan.calls) hash = HashText(call, hash);
  return HashNumber(options.plan.limit, hash);
}

bool HoldsPlanOf(const WorkDir& dir, const EngineOptions& options, std::uint64_t subject) {
  const Result<std::string> text = ReadFile(dir.File("plan.txt"));
  if (!text.ok()) return false;
  const Result<PlanFile> plan = ParsePlan(*text, "plan.txt");
  return plan.ok() && plan->subject == OptionsHash(options, subject);
}

Status CheckSettings(const WorkDir& dir, const Settings& settings) {
  const std::string path = dir.File("plan.txt");
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return {};
  const Result<std::string> text = ReadFile(path);
  const Result<PlanFile> before = text.ok() ? ParsePlan(*text, path) : text.status();
  if (!before.ok()) return before.status();
  const std::string differences = Differences(before->settings, settings);
  if (differences.empty()) return {};
  return {Exit::Usage, path + ": holds the plan of another sweep: " + differences + ": choose another --work-dir"};
}

SweepEngine::SweepEngine(Runner* runner, const WorkDir* dir, const EngineOptions& options, const Reproduction& reproduction,
                         SiteTexts* sites)
    : runner_(runner), dir_(dir), options_(options), reproduction_(reproduction), sites_(sites) {}

void SweepEngine::TakeRehearsal(Rehearsal rehearsal) {
  rehearsal_ = std::move(rehearsal);
  rehearsed_ = Tables(*rehearsal_);
  if (options_.tell_calls) calls_.emplace(rehearsed_.front());
  by_site_ = (rehearsal_->drifting || rehearsal_->threaded) && rehearsal_->run.journal.header().stack_depth.load() != 0;
}

Status SweepEngine::PrepareOne(Rehearsal rehearsal, std::vector<std::string> faults) {
  TakeRehearsal(std::move(rehearsal));
  single_ = true;
  by_site_ = std::any_of(faults.begin(), faults.end(), IsBySite);
  round_ = options_.depth;
  possible_ = 1;
  std::vector<std::uint64_t> sites(faults.size());
  plan_.push_back({std::move(faults), std::move(sites)});
  return GiveRound(0);
}

PlannedFaults SweepEngine::TakeFirstFaults() {
  const CallStates states = CallsToPlan();
  PlannedFaults first = MakePlan(states, options_.plan, by_site_);
  if (options_.depth > 1) first_faults_ = FirstFaults(states, first);  // no second faults are compared with them otherwise
  AppendHostFaults(*rehearsal_, options_.plan, &first);
  for (const CallState& call : states.calls) first_sites_.insert(call.site);
  first_sites_.insert(first.sites.begin(), first.sites.end());
  return first;
}

Status SweepEngine::Prepare(Rehearsal rehearsal, std::uint64_t subject, Settings settings) {
  TakeRehearsal(std::move(rehearsal));
  PlannedFaults first = TakeFirstFaults();
  for (const PlannedWay& one : first.ways) {
    if (one.why_not == Reason::None) {
      coverage_.Plan(one.way, one.trial);
    } else {
      coverage_.LeaveOut(one.way, one.why_not);
    }
  }
  possible_ = first.possible;
  skipped_ = std::move(first.skipped);
  pruned_ = first.pruned;
  Status loaded = LoadOrWritePlan(std::move(first), OptionsHash(options_, subject), std::move(settings));
  if (!loaded.ok()) return loaded;
  CompareWithBefore();
  return BeginRounds();
}

CallStates SweepEngine::CallsToPlan() {
  std::vector<CallStates> runs;
  const StatesAre are = StatesFor(options_.plan.prune);
  for (const Rehearsed& one : rehearsed_) {
    runs.push_back(StatesOf(one.run(), {}, are));
    if (!by_site_) return std::move(runs.front());
  }
  return SitedCalls(runs);
}

Status SweepEngine::LoadOrWritePlan(PlannedFaults first, std::uint64_t subject, Settings settings) {
  PlanFile plan = {.subject = subject, .settings = std::move(settings), .faults = std::move(first.faults), .sites = std::move(first.sites)};
  if (dir_ != nullptr) {
    const std::string path = dir_->File("plan.txt");
    Status same = CheckSettings(*dir_, plan.settings);
    if (!same.ok()) return same;
    struct stat facts = {};
    if (stat(path.c_str(), &facts) == 0) {
      const Result<std::string> text = ReadFile(path);
      if (!text.ok()) return text.status();
      const Result<PlanFile> before = ParsePlan(*text, path);
      if (!before.ok()) return before.status();
      if (before->subject != plan.subject || before->faults != plan.faults) {
        return {Exit::Usage, path + ": holds the plan of another sweep, of another build of the program, or of other files (digest " +
                                 Hex(before->Digest()) + ", this one has " + Hex(plan.Digest()) + "): choose another --work-dir"};
      }
      // Threads may have taken turns in another order this time. The faults keep the places that earlier trials were held to.
      plan.sites = before->sites;
    } else {
      Status written = WriteFile(path, FormatPlan(plan), Exit::Usage, 0600);  // a short secret can be guessed from its digest
      if (!written.ok()) return written;
    }
    Result<TrialLog> log = TrialLog::Open(dir_->File("trials.jsonl"));
    if (!log.ok()) return log.status();
    log_ = std::move(*log);
    log_->Add(std::exchange(known_, {}));
  }
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    PlannedTrial& trial = plan_.emplace_back();
    trial.faults.push_back(std::move(plan.faults[i]));  // an initialiser list would copy it
    trial.sites.push_back(plan.sites[i]);
  }
  return {};
}

// Takes the trials from `from` on that an earlier sweep in this directory has finished.
Status SweepEngine::TakeLogged(std::size_t from) {
  if (!log_.has_value()) return {};
  for (std::size_t index = from; index < plan_.size(); ++index) {
    Result<std::vector<TrialResult>> logged = log_->Take(index, plan_[index].faults);
    if (!logged.ok()) return logged.status();
    for (TrialResult& trial : *logged) {
      if (!trial.stray) Claim(index, &trial.unwinding);
      if (!trial.stray && !plan_[index].shrinks) ++resumed_;
      Keep(std::move(trial));
    }
  }
  found_before_ = first_found_.has_value();
  return {};
}

// Rounds that are complete in the log are skipped. The first incomplete round may have some trials there, later rounds none.
Status SweepEngine::BeginRounds() {
  std::size_t from = 0;
  for (;;) {
    Status taken = TakeLogged(from);
    if (!taken.ok()) return taken;
    if (!RoundDone()) break;
    from = plan_.size();
    finished_ = !PlanNext();
    if (finished_) break;
  }
  Status of_the_plan = log_.has_value() && known_whole_ ? log_->CheckTaken() : Status();
  return finished_ || !of_the_plan.ok() ? of_the_plan : GiveRound(from);
}

TrialOrder SweepEngine::OrderOf(std::size_t index) const { return {index, plan_[index].faults, AttemptOf(index), round_ < options_.depth}; }

bool SweepEngine::PlanNext() {
  if (single_ || shard_) return false;
  const std::size_t from = plan_.size();
  SettleShapes();
  if (plan_.size() != from) return true;
  if (round_ < options_.depth) {
    PlanUnwinding();
    if (plan_.size() == from) SettleShapes();  // --limit has no room for any
    if (plan_.size() != from) return true;
  }
  if (!options_.shrink) return false;
  FindShrinkable();
  round_ = options_.depth + 1;
  while (PlanShrinking()) {
    if (plan_.size() != from) return true;
  }
  return false;
}

void SweepEngine::Keep(TrialResult trial) {
  const std::size_t index = trial.index;
  if (trial.stray) {
    strays_[index].push_back(std::move(trial));
  } else {
    if (!first_found_.has_value() && !trial.findings.empty()) first_found_ = index;
    results_.emplace_hint(results_.end(), index, std::move(trial));  // in order as a rule
  }
}

int SweepEngine::AttemptOf(std::size_t index) const {
  const auto strays = strays_.find(index);
  return strays == strays_.end() ? 1 : strays->second.back().attempt + 1;
}

TrialResult SweepEngine::Judged(const TrialSeen& one) {
  const PlannedTrial& planned = plan_[one.index];
  if (!one.settled) return JudgeBesideAll(one.index, planned.faults, planned.sites, rehearsed_, one.seen, options_.judge, sites_);
  TrialResult trial = {.index = one.index, .faults = planned.faults, .missed = one.settled->missed};
  trial.fired = trial.missed == Missed::Nothing;
  trial.ending = one.seen.ending;
  trial.verdict = one.settled->verdict;
  trial.said = one.settled->said;
  trial.skipped = one.settled->skipped;
  if (options_.benign.empty()) return trial;
  trial.fault_site = PlaceText(CallInText(planned.faults.front()), {});
  for (std::size_t i = 1; i < planned.faults.size(); ++i) trial.later_sites.push_back(PlaceText(CallInText(planned.faults[i]), {}));
  return trial;
}

Status SweepEngine::Step() {
  Result<TrialSeen> one = runner_->Next();
  if (!one.ok()) return one.status();
  const PlannedTrial& planned = plan_[one->index];
  TrialResult trial = Judged(*one);
  if (calls_ && !one->settled && !trial.findings.empty()) {
    if (auto after = TellAfterFault(*calls_, one->seen, planned.faults, trial.findings, sites_)) {
      trial.after = after_faults_.Share(std::move(*after));
    }
  }
  ApplyBenign(options_.benign, &trial);
  trial.attempt = AttemptOf(one->index);
  trial.isolation = one->isolation;
  trial.fallback = one->fallback;
  const bool by_chance = trial.missed == Missed::Elsewhere || trial.missed == Missed::Unfired || trial.missed == Missed::Late;
  trial.stray = by_chance && (!single_ || by_site_) && !runner_->repeats_exactly() && !planned.shrinks &&
                trial.attempt < (by_site_ ? kAttemptsBySite : kAttempts);
  // A hit that was only not fully recorded still has an unwinding.
  if ((trial.fired || trial.missed == Missed::Unseen) && round_ < options_.depth) {
    const auto claimed = [&](const NextFault& next) { return !trial.stray && IsClaimed(one->index, next); };
    trial.unwinding = FaultsWhileUnwinding(rehearsed_.front(), first_faults_, one->seen, planned.faults, options_.plan.prune,
                                           by_site_ ? &first_sites_ : nullptr, claimed);
  }
  Status repeated = runner_->Repeat(&trial);
  if (!repeated.ok()) return repeated;
  if (log_.has_value()) {
    Status logged = log_->Append(trial);
    if (!logged.ok()) return logged;
  }
  if (single_ && !one->settled) {
    seen_ = std::move(one->seen);
    trial.host_left_out = Reason::None;  // the report describes the host of this trial
  }
  const bool again = trial.stray;
  Keep(std::move(trial));
  if (again) return runner_->Give({OrderOf(one->index)});
  std::size_t waiting = 0;
  for (const auto& [turn, orders] : waiting_) waiting += orders.size();
  if (!RoundDone()) return waiting != 0 && results_.size() + waiting == plan_.size() ? GiveTurn() : Status();
  const std::size_t from = plan_.size();
  finished_ = !PlanNext();
  return finished_ ? Status() : GiveRound(from);
}

report::Acquired SweepEngine::SiteInWords(std::uint64_t site) {
  if (site == 0 || !first_sites_.contains(site)) return {};
  if (sites_of_rehearsed_.empty()) {
    for (const Rehearsed& one : rehearsed_) sites_of_rehearsed_.push_back(SitesOf(one.run()));
  }
  for (std::size_t i = 0; i < rehearsed_.size(); ++i) {
    const auto found = sites_of_rehearsed_[i].find(site);
    if (found != sites_of_rehearsed_[i].end()) return sites_->Text(*rehearsed_[i].run().journal, found->second, site);
  }
  return {};
}

void SweepEngine::ReportDrift(Groups* groups, report::Run* run) {
  TrialFindingText text;
  text.rule = Rule::Drifting;
  report::Finding note = {.rule = text.rule};
  note.title =
      Words(Details{{rehearsal_->same_work ? Detail::TurnsVary : Detail::RunsDiffer}, {by_site_ ? Detail::ByStack : Detail::ByCount}});
  note.where = Words(rehearsal_->drift);
  note.fingerprint = groups->fingerprints.Claim(Fingerprint(text));
  note.reproduce = ReproduceLine(reproduction_, {});
  run->notes.push_back(std::move(note));
  if (rehearsal_->not_compared != 0) Count(Reason::OrderNotCompared, rehearsal_->not_compared, &run->totals.skipped);
}

void SweepEngine::ReportBenign(Groups* groups, report::Run* run) const {
  if (single_) return;
  const bool all_tried = finished_ && ended_here_ == Reason::None && options_.plan.calls.empty() && options_.plan.limit == 0;
  const std::vector<TrialFindingText> never = NeverFired(options_.benign, results_);
  if (all_tried) {
    AddFaultFree(never, {}, reproduction_, groups, run);
  } else if (!never.empty()) {
    Count(Reason::BenignUntried, never.size(), &run->totals.skipped);
  }
}

void SweepEngine::Report(report::Run* run) {
  Groups groups;
  run->mode = single_ ? report::Mode::Replay : report::Mode::Sweep;
  DescribeRun(rehearsal_->run, run);
  if (seen_) DescribeHostOfTrial(*seen_, run);
  if (!single_) AddOutputs(rehearsal_->outputs, run);
  Count(skipped_, &run->totals.skipped);
  Count(pruned_, &run->totals.pruned);
  if (rehearsal_->drifting) ReportDrift(&groups, run);
  if (!by_site_ && (rehearsal_->drifting || rehearsal_->threaded)) {
    Count(rehearsal_->drifting ? Reason::ByCountDrifting : Reason::ByCountThreads, 1, &run->totals.skipped);
  }
  std::size_t again = 0;
  for (const auto& [index, strays] : strays_) again += strays.size();
  if (again != 0) Count(Reason::TriedAgain, again, &run->totals.skipped);
  if (!single_) {
    AddFaultFree(rehearsal_->run, reproduction_, sites_, &groups, run);
    AddFaultFree(rehearsal_->host_findings, {}, reproduction_, &groups, run);
  }
  std::vector<const TrialResult*> in_order;
  in_order.reserve(results_.size());
  for (auto& [index, trial] : results_) {
    if (plan_[index].shrinks) {
      ++run->totals.shrinking;
      continue;
    }
    const auto strays = strays_.find(index);
    if (strays != strays_.end()) {
      for (const TrialResult& stray : strays->second) in_order.push_back(&stray);
    }
    in_order.push_back(&trial);
    if (trial.isolation != Isolation::Unknown) {
      ++run->totals.isolation[{trial.isolation, trial.fallback}];
    }
    if (!trial.fired) trial.planned_site = SiteInWords(plan_[index].sites.back());
  }
  const auto fewer = [this](const TrialResult& trial, const TrialFindingText& finding) -> const TrialResult* {
    if (finding.least < 0) return nullptr;
    const std::size_t least = shrinking_[static_cast<std::size_t>(finding.least)].least;
    const auto found = least == trial.index ? results_.end() : results_.find(least);
    return found == results_.end() ? nullptr : &found->second;
  };
  AddTrials(in_order, reproduction_, options_.benign, &groups, run, fewer);
  ReportBenign(&groups, run);
  groups.defects.Find(run);
  if (calls_) {
    const auto only_shrinks = [this](std::size_t trial) { return OnlyShrinks(trial); };
    TellCalls(rehearsed_.front(), *calls_, results_, only_shrinks, sites_, run);
  }
  if (!single_)
    run->coverage = coverage_.Result(
        results_, [this](std::uint64_t site) { return SiteInWords(site); },
        ended_here_ == Reason::None ? Reason::Interrupted : ended_here_);
  for (const auto& [reason, count] : pruned_) run->coverage->pruned += count;  // a single trial prunes nothing
  if (!finished_) return;
  SetOutcome(in_order, possible_, dir_ == nullptr ? std::string("memory") : dir_->path(), run);
  if (single_) return;  // who replays a trial sees what became of it
  if (run->outcome == words::Outcome::Clean && !rehearsal_->grown.empty()) ++run->totals.skipped[{Reason::CyclesDiffer, rehearsal_->grown}];
  RefuseUnseenAbandonment(rehearsal_->run.journal.header(), in_order, run);
  if (options_.coverage_at_least.has_value()) RequireCoverage(*options_.coverage_at_least, run);
}

std::vector<report::TrialRow> SweepEngine::Rows() const {
  std::vector<report::TrialRow> rows;
  rows.reserve(results_.size());
  for (const auto& [index, trial] : results_) {
    if (!OnlyShrinks(index)) rows.push_back(RowOf(trial));
  }
  return rows;
}

}  // namespace cuaudit::harness
