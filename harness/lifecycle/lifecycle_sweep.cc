// SPDX-License-Identifier: MIT
#include "harness/lifecycle/lifecycle_sweep.h"

#include <algorithm>
#include <csignal>
#include <new>
#include <optional>
#include <utility>

#include "faults/driver/result.h"
#include "faults/plan/fault.h"
#include "harness/lifecycle/chosen_driver.h"
#include "harness/lifecycle/diversion.h"
#include "harness/lifecycle/trial_verdict.h"
#include "harness/sweep/make_plan.h"
#include "harness/sweep/plan_file.h"
#include "harness/sweep/rehearsal.h"

namespace cuaudit::harness {
namespace {

Status ParseFault(const std::string& text, faults::Fault* fault) {
  const faults::ParseError error = faults::ParseFault(text, fault);
  if (error.expected == nullptr) return {};
  return {Exit::Usage, "fault '" + text + "': column " + std::to_string(error.column) + ": expected " + error.expected};
}

// "cuMemAlloc" or "cuMemAlloc#2": a fault text without what is to happen.
Status ParseBenign(const std::string& text, faults::Fault* fault) {
  const bool counted = text.find('#') != std::string::npos;
  const faults::ParseError error = faults::ParseFault(text + (counted ? "" : "#1") + "=ILLEGAL_ADDRESS,refuse", fault);
  if (error.expected != nullptr || text.find('=') != std::string::npos)
    return {Exit::Usage, "Benign(\"" + text + "\"): expected a driver entry point, such as cuMemAlloc or cuMemAlloc#2"};
  if (!counted) fault->occurrence = 0;
  return {};
}

constexpr int kMostLooks = 10;  // deadlines that a trial may last while it makes calls, or has not met its fault

std::string WordsFor(const std::string& lifecycle, const std::vector<std::string>& faults) {
  std::string words = "cuaudit: lifecycle '" + lifecycle + "' ends this process in the trial CUAUDIT_FAULT='";
  for (std::size_t i = 0; i < faults.size(); ++i) words.append(i == 0 ? "" : ";").append(faults[i]);
  return words.append("'; with SweepOptions::isolate that is a verdict\n");
}

harness::Prune PruneOf(cuaudit::Prune prune) {
  switch (prune) {
    case cuaudit::Prune::None:
      return harness::Prune::None;
    case cuaudit::Prune::Second:
      return harness::Prune::Second;
    case cuaudit::Prune::All:
      return harness::Prune::All;
  }
  return harness::Prune::None;
}

bool Died(const Ending& ending) { return ending.signal != 0 || ending.timed_out; }

}  // namespace

LifecycleSweep::LifecycleSweep(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, Audit* audit)
    : lifecycle_(lifecycle),
      options_(options),
      audit_(audit),
      prune_(PruneOf(options.prune)),
      host_(options.host && !options.isolate, IsGenuine(options.driver)),
      texts_(lifecycle.name()) {
  audit->lifecycle = lifecycle.name();
}

void LifecycleSweep::Run(const Faults& only) {
  Status status = CheckHostFaults(only);
  if (status.ok()) status = Rehearse();
  std::vector<Faults> round;
  const std::optional<LastWords> words = shared_trace_ == nullptr ? std::optional<LastWords>(std::in_place) : std::nullopt;
  if (status.ok() && only.empty()) {
    JudgeFaultFree();
    status = Plan(&round);
    if (status.ok()) status = JudgeFaultFreeHost();
  }
  if (status.ok() && !only.empty()) round.push_back(only);
  for (int depth = only.empty() ? 1 : options_.depth; status.ok() && !round.empty(); ++depth) {
    std::vector<Faults> next;
    for (std::size_t i = 0; status.ok() && i < round.size(); ++i) {
      status = RunTrial(round[i], depth < options_.depth ? &next : nullptr);
      if (status.ok() && trace_.lost != CUDA_SUCCESS) status = ContextLost(round[i], round.size() - i - 1 + next.size());
    }
    round = std::move(next);
  }
  if (status.ok()) {
    Conclude();
    return;
  }
  audit_->outcome = status.not_exercised() ? AuditOutcome::NotExercised : AuditOutcome::Error;
  audit_->message = status.message();
}

Status LifecycleSweep::ContextLost(const Faults& faults, std::size_t left) const {
  std::string text =
      "the genuine driver's context is lost (CUDA_ERROR_" + std::string(driver::ShortResultName(trace_.lost)) + ") after the trial '";
  for (std::size_t i = 0; i < faults.size(); ++i) text.append(i == 0 ? "" : ";").append(faults[i]);
  return {Exit::Environment, text + "'; " + std::to_string(left) + " known trials need another process"};
}

Status LifecycleSweep::Rehearse() {
  for (const std::string& text : lifecycle_.benign()) {
    faults::Fault fault;
    Status status = ParseBenign(text, &fault);
    if (!status.ok()) return status;
    benign_.push_back(fault);
  }
  benign_seen_.assign(benign_.size(), false);
  Result<TrialWorld::Pointer> first = TrialWorld::Open(options_.driver, false);
  if (!first.ok()) return first.status();
  Result<TrialWorld::Pointer> second = TrialWorld::Open(options_.driver, options_.isolate);
  if (!second.ok()) return second.status();
  rehearsed_in_ = std::move(*first);
  world_ = std::move(*second);
  audit_->driver = world_->driver();

  Observation again;
  for (TrialWorld* const world : {rehearsed_in_.get(), world_.get()}) {
    TrialTrace trace;
    Metering metering = MeteringOfRuns();
    metering.others = metering.first;
    world->Run(lifecycle_, faults::Plan(), Stacks::FaultedCycle, kMostCycles, metering, &trace);
    // A trial's faulted cycle is the first of its world; what a program keeps once it keeps in the world before.
    if (world == world_.get()) {
      good_host_ = WhatIsKept(trace.cycle[0].host);
      good_span_ = trace.cycle[0].seen;
      if (metering.records != nullptr) good_kept_ = KeptBy(*metering.records, good_span_);
    }
    if (!trace.opened) return {Exit::Environment, "the simulated driver got no address space (limit on virtual memory?)"};
    if (!trace.prepared) {
      const std::string code = trace.prepare.has_code ? ": CUDA_ERROR_" + std::string(driver::ShortResultName(trace.prepare.code)) : "";
      return {Exit::Environment, "preparing the case failed" + code};
    }
    if (trace.first_failed != 0) {
      const char* const second_cycle = trace.first_failed == 1 ? "" : " in a second cycle";
      return {Exit::Environment, "without any fault " + FirstFailure(trace.failed) + second_cycle};
    }
    if (trace.lost != CUDA_SUCCESS) {
      return {Exit::Environment, "without any fault the context is lost: CUDA_ERROR_" + std::string(driver::ShortResultName(trace.lost))};
    }
    const faults::JournalView journal = world->Journal();
    if ((journal.header().flags.load() & faults::kRecordsDropped) != 0)
      return {Exit::Failure, "one cycle makes more driver calls than the journal has room for"};
    (world == world_.get() ? again : rehearsal_) = Observe(journal, trace, Ending());
    if (world == rehearsed_in_.get()) rehearsal_spotless_ = BalanceOf(journal, trace) == Balance::Spotless;
  }
  if (TraceHash(rehearsal_.evidence()) != TraceHash(again.evidence()))
    audit_->drift = FirstDifference(rehearsal_.evidence(), again.evidence());
  if (options_.isolate) {
    shared_trace_ = std::make_unique<SharedBytes>(sizeof(TrialTrace));
    if (shared_trace_->get() == nullptr) return {Exit::Failure, "no memory to share with the processes of trials"};
    ::new (shared_trace_->get()) TrialTrace();
  }
  audit_->calls = rehearsal_.ledger.facts.calls.size();
  rehearsed_.emplace(rehearsal_.evidence());
  if (rehearsal_.ledger.facts.calls.empty()) {
    return Status::NotExercised(std::string("no step called the driver") +
                                (Diversion::present() ? "" : ": calls of cu* functions by name are seen with the drop-in library only"));
  }
  return {};
}

void LifecycleSweep::JudgeFaultFree() {
  const Judgement judgement = Judge(nullptr, rehearsal_.evidence(), JudgeOptions());
  TrialVerdict verdict;
  verdict.findings = judgement.findings;
  verdict.notes = judgement.notes;
  texts_.Add(verdict, rehearsal_.journal, {}, audit_);
}

bool LifecycleSweep::IsBenign(const faults::Fault& fault) {
  bool benign = false;
  for (std::size_t i = 0; i < benign_.size(); ++i) {
    if (benign_[i].base != fault.base || (benign_[i].occurrence != 0 && benign_[i].occurrence != fault.occurrence)) continue;
    benign = true;
    benign_seen_[i] = true;
  }
  return benign;
}

Status LifecycleSweep::Plan(std::vector<Faults>* trials) {
  PlanOptions plan_options;
  plan_options.hows = options_.hows;
  plan_options.all_codes = options_.all_codes;
  plan_options.calls = options_.calls;
  plan_options.limit = options_.limit;
  plan_options.prune = prune_;
  Status status = CheckPlanOptions(plan_options);
  if (!status.ok()) return status;
  const CallStates states = StatesOf(rehearsal_.evidence(), {}, StatesFor(prune_));
  const PlannedFaults plan = MakePlan(states, plan_options);
  first_faults_ = FirstFaults(states, plan);
  harness::Count(plan.skipped, &audit_->skipped);
  harness::Count(plan.pruned, &audit_->pruned);
  for (const std::string& text : plan.faults) trials->push_back({text});
  PlanHostFaults(trials);
  return {};
}

void LifecycleSweep::PlanUnwinding(const Faults& faults, const Ending& ending, std::vector<Faults>* next) {
  Observation trial = Observe(world_->Journal(), trace_, ending);
  // No fault is armed in a second teardown.
  const StepTrace& second = trace_.cycle[0].at(StepName::SecondTeardown);
  if (second.ran) {
    const auto records = trial.journal.records();
    const auto end = std::find_if(records.begin(), records.end(), [&](const faults::Record& one) { return one.begin > second.begin; });
    trial.journal = trial.journal.Part(0, static_cast<std::size_t>(end - records.begin()));
    trial.ledger.facts = FactsOf(trial.journal.records());
  }
  const Unwinding unwinding = FaultsWhileUnwinding(*rehearsed_, first_faults_, trial, faults, prune_);
  harness::Count(unwinding.pruned, &audit_->pruned);
  for (const NextFault& one : unwinding.faults) {
    if (prune_ != harness::Prune::None && one.state != 0 && !ways_tried_.insert(WayAt(one.fault, one.state)).second) {
      harness::Count(Reason::SecondSameStateApi, 1, &audit_->pruned);
    } else if (options_.limit != 0 && audit_->trials + 1 + next->size() >= options_.limit) {
      harness::Count(Reason::BeyondLimitApi, 1, &audit_->skipped);
    } else {
      next->push_back(faults);
      next->back().push_back(one.fault);
    }
  }
}

void LifecycleSweep::Count(Verdict verdict, bool fired, const std::vector<Reason>& skipped) {
  ++audit_->trials;
  if (fired) ++audit_->fired;
  ++audit_->verdicts[std::string(Name(verdict))];
  for (const Reason reason : skipped) harness::Count(reason, 1, &audit_->skipped);
}

Status LifecycleSweep::RunTrial(const Faults& texts, std::vector<Faults>* next) {
  PlannedFaultList faults;
  faults::Plan plan;
  for (const std::string& text : texts) {
    PlannedFault planned;
    Status status = ParseFault(text, &planned.fault);
    if (!status.ok()) return status;
    planned.benign = IsBenign(planned.fault);
    faults.push_back(planned);
    if (!plan.Add(planned.fault)) return {Exit::Usage, "expected at most " + std::to_string(faults::kMaxFaults) + " faults in one trial"};
  }
  if (shared_trace_ == nullptr) LastWords::Set(WordsFor(lifecycle_.name(), texts));
  const Stacks stacks = !rehearsal_spotless_ ? Stacks::All : next != nullptr ? Stacks::FaultedCycle : Stacks::None;
  Result<Ending> ending = Execute(plan, stacks);
  if (!ending.ok()) return ending.status();
  if (rehearsal_spotless_ && !Died(*ending)) {
    std::vector<Reason> skipped;
    if (std::optional<Verdict> said = Screen(lifecycle_, faults, world_->Journal(), trace_, &skipped)) {
      if (next != nullptr) PlanUnwinding(texts, *ending, next);
      Status status = JudgeHost(texts, faults, plan, &*said);
      Count(*said, true, skipped);
      return status;
    }
  }
  if (stacks != Stacks::All && trace_.lost == CUDA_SUCCESS) ending = Execute(plan, Stacks::All);
  if (!ending.ok()) return ending.status();
  const faults::JournalView journal = world_->Journal();
  const TrialVerdict verdict = JudgeTrial(lifecycle_, faults, *rehearsed_, journal, trace_, *ending);
  texts_.Add(verdict, journal, texts, audit_);
  if (next != nullptr && verdict.fired) PlanUnwinding(texts, *ending, next);
  Verdict said = verdict.verdict;
  Status status;
  if (verdict.fired && !Died(*ending) && trace_.lost == CUDA_SUCCESS) status = JudgeHost(texts, faults, plan, &said);
  Count(said, verdict.fired, verdict.skipped);
  return status;
}

Result<Ending> LifecycleSweep::Execute(const faults::Plan& plan, Stacks stacks) {
  Result<Ending> ending = ExecuteOnce(plan, stacks);
  if (trace_.unheard != 0) harness::Count(Reason::Unheard, trace_.unheard, &audit_->skipped);
  return ending;
}

Result<Ending> LifecycleSweep::ExecuteOnce(const faults::Plan& plan, Stacks stacks) {
  if (shared_trace_ == nullptr) {
    world_->Run(lifecycle_, plan, stacks, kMostCycles, MeteringOfRuns(), &trace_);
    if (trace_.kept != 0) harness::Count(Reason::Unreturned, trace_.kept, &audit_->skipped);
    return Ending();
  }
  auto* const trace = static_cast<TrialTrace*>(shared_trace_->get());
  *trace = TrialTrace();
  world_->Forget();
  // It hangs when the faults have fired and nothing has been called since the last look; a machine that is slow is no hang.
  std::uint64_t clock = 0;
  int looks = 0;
  const auto still_going = [&] {
    const faults::JournalView journal = world_->Journal();
    const std::uint64_t before = std::exchange(clock, journal.header().clock.load());
    return ++looks < kMostLooks && (before != clock || !AllFired(journal, plan.size()));
  };
  Result<Ending> ending =
      RunForked([&] { world_->Run(lifecycle_, plan, stacks, kMostCycles, Metering(), trace); }, options_.deadline_ms, still_going);
  trace_ = *trace;
  const bool left = ending.ok() && !Died(*ending) && !trace_.finished;
  if (left) ending->signal = SIGABRT;  // it exited in the middle of a step, or a sanitizer ended it
  return ending;
}

void LifecycleSweep::Conclude() {
  if (host_.wanted()) {
    audit_->unmetered = host_.unmetered();
    if (!host_.alone()) audit_->unmetered.push_back(Words(Reason::HostNotAlone));
  } else {
    audit_->unmetered.push_back(Words(options_.isolate ? Reason::HostIsolated : Reason::HostAsAsked));
  }
  for (std::size_t i = 0; i < benign_.size(); ++i) {
    if (!benign_seen_[i]) ++audit_->skipped[Words(Reason::BenignUnhit, lifecycle_.benign()[i])];
  }
  if (!audit_->findings.empty()) {
    audit_->outcome = AuditOutcome::Findings;
  } else if (audit_->fired == 0 || audit_->fired != audit_->trials) {
    audit_->outcome = AuditOutcome::NotExercised;
    audit_->message = audit_->trials == 0 ? "no call of the lifecycle can fail"
                                          : std::to_string(audit_->trials - audit_->fired) + " of " + std::to_string(audit_->trials) +
                                                " planned faults did not fire";
  } else if (!audit_->drift.empty() && !options_.may_drift) {
    audit_->outcome = AuditOutcome::NotExercised;
    audit_->message = "two fault-free runs differ, so faults may have hit other calls than planned (SweepOptions::may_drift)";
  } else {
    audit_->outcome = AuditOutcome::Clean;
    audit_->message = std::to_string(audit_->fired) + " faults fired, each unwound cleanly";
    std::uint64_t pruned = 0;
    for (const auto& [reason, count] : audit_->pruned) pruned += count;
    if (pruned != 0) audit_->message += "; " + std::to_string(pruned) + " pruned as equal (SweepOptions::prune = Prune::None tries them)";
  }
}

}  // namespace cuaudit::harness
