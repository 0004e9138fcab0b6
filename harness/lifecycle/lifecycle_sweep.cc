// SPDX-License-Identifier: MIT
#include "harness/lifecycle/lifecycle_sweep.h"

#include <algorithm>
#include <utility>

#include "faults/driver/result.h"
#include "faults/plan/fault.h"
#include "harness/lifecycle/diversion.h"
#include "harness/lifecycle/trial_verdict.h"
#include "harness/sweep/make_plan.h"
#include "harness/sweep/rehearsal.h"

namespace cuaudit::harness {
namespace {

Status ParseFaults(const std::vector<std::string>& texts, std::vector<faults::Fault>* faults) {
  for (const std::string& text : texts) {
    faults::Fault fault;
    const faults::ParseError error = faults::ParseFault(text, &fault);
    if (error.expected != nullptr)
      return {Exit::Usage, "fault '" + text + "': column " + std::to_string(error.column) + ": expected " + error.expected};
    faults->push_back(fault);
  }
  return {};
}

Result<faults::Plan> PlanOf(const std::vector<faults::Fault>& faults) {
  faults::Plan plan;
  for (const faults::Fault& fault : faults) {
    if (!plan.Add(fault)) return Status(Exit::Usage, "expected at most " + std::to_string(faults::kMaxFaults) + " faults in one trial");
  }
  return plan;
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

}  // namespace

LifecycleSweep::LifecycleSweep(const Lifecycle& lifecycle, const SweepOptions& options, Audit* audit)
    : lifecycle_(lifecycle), options_(options), audit_(audit), texts_(lifecycle) {
  audit->lifecycle = lifecycle.name();
}

void LifecycleSweep::Run(const std::vector<std::string>& only) {
  Status status = Rehearse();
  std::vector<Order> orders;
  if (status.ok() && only.empty()) {
    JudgeFaultFree();
    status = Plan(&orders);
  }
  if (status.ok() && !only.empty()) orders.push_back({only, false});
  for (const Order& order : orders) {
    if (!status.ok()) break;
    status = RunTrial(order);
  }
  if (status.ok()) {
    Conclude();
    return;
  }
  audit_->outcome = status.not_exercised() ? AuditOutcome::NotExercised : AuditOutcome::Error;
  audit_->message = status.message();
}

Status LifecycleSweep::Rehearse() {
  for (const std::string& text : lifecycle_.benign()) {
    faults::Fault fault;
    Status status = ParseBenign(text, &fault);
    if (!status.ok()) return status;
    benign_.push_back(fault);
  }
  benign_seen_.assign(benign_.size(), false);
  Result<std::unique_ptr<TrialWorld>> first = TrialWorld::Open(options_.driver, false);
  if (!first.ok()) return first.status();
  Result<std::unique_ptr<TrialWorld>> second = TrialWorld::Open(options_.driver, false);
  if (!second.ok()) return second.status();
  rehearsed_in_ = std::move(*first);
  world_ = std::move(*second);

  Observation again;
  for (TrialWorld* const world : {rehearsed_in_.get(), world_.get()}) {
    TrialTrace trace;
    world->Run(lifecycle_, faults::Plan(), true, kMostCycles, &trace);
    if (!trace.opened) return {Exit::Environment, "the simulated driver got no address space (limit on virtual memory?)"};
    if (!trace.prepared) {
      const std::string code = trace.prepare.has_code ? ": CUDA_ERROR_" + std::string(driver::ShortResultName(trace.prepare.code)) : "";
      return {Exit::Environment, "preparing the case failed" + code};
    }
    if (trace.first_failed != 0) {
      const char* const second_cycle = trace.first_failed == 1 ? "" : " in a second cycle";
      return {Exit::Environment, "without any fault " + FirstFailure(trace.failed) + second_cycle};
    }
    const faults::JournalView journal = world->Journal();
    if ((journal.header().flags.load() & faults::kRecordsDropped) != 0)
      return {Exit::Failure, "one cycle makes more driver calls than the journal has room for"};
    (world == world_.get() ? again : rehearsal_) = Observe(journal, trace, Ending());
    if (world == rehearsed_in_.get()) rehearsal_spotless_ = BalanceOf(journal, trace) == Balance::Spotless;
  }
  if (TraceHash(rehearsal_.journal) != TraceHash(again.journal)) audit_->drift = FirstDifference(rehearsal_.journal, again.journal);
  audit_->calls = rehearsal_.ledger.calls;
  if (rehearsal_.journal.records().empty() || rehearsal_.ledger.calls == 0) {
    return Status::NotExercised(std::string("no step called the driver") +
                                (Diversion::present() ? "" : ": calls of cu* functions by name are seen with the drop-in library only"));
  }
  return {};
}

void LifecycleSweep::JudgeFaultFree() {
  const Judgement judgement = Judge(Evidence(), rehearsal_.evidence(), false, JudgeOptions());
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

Status LifecycleSweep::Plan(std::vector<Order>* orders) {
  PlanOptions plan_options;
  plan_options.hows = options_.hows;
  plan_options.all_codes = options_.all_codes;
  plan_options.calls = options_.calls;
  plan_options.limit = options_.limit;
  Status status = CheckPlanOptions(plan_options);
  if (!status.ok()) return status;
  const PlannedFaults plan = MakePlan(rehearsal_.journal, plan_options);
  for (const auto& [reason, count] : plan.skipped) audit_->skipped[reason] += count;
  for (const std::string& text : plan.faults) {
    std::vector<faults::Fault> faults;
    status = ParseFaults({text}, &faults);
    if (!status.ok()) return status;
    orders->push_back({{text}, IsBenign(faults.front())});
  }
  return {};
}

void LifecycleSweep::Count(const std::string& verdict, bool fired, const std::vector<std::string>& skipped) {
  ++audit_->trials;
  if (fired) ++audit_->fired;
  ++audit_->verdicts[verdict];
  for (const std::string& reason : skipped) ++audit_->skipped[reason];
}

Status LifecycleSweep::RunTrial(const Order& order) {
  std::vector<faults::Fault> faults;
  Status status = ParseFaults(order.faults, &faults);
  if (!status.ok()) return status;
  const Result<faults::Plan> plan = PlanOf(faults);
  if (!plan.ok()) return plan.status();
  TrialTrace trace;
  if (rehearsal_spotless_) {
    world_->Run(lifecycle_, *plan, false, kMostCycles, &trace);
    std::vector<std::string> skipped;
    const std::string verdict = Screen(lifecycle_, faults, order.benign, world_->Journal(), trace, &skipped);
    if (!verdict.empty()) {
      Count(verdict, true, skipped);
      return {};
    }
  }
  world_->Run(lifecycle_, *plan, true, kMostCycles, &trace);
  const faults::JournalView journal = world_->Journal();
  const TrialVerdict verdict = JudgeTrial(lifecycle_, faults, order.benign, rehearsal_, journal, trace, Ending());
  Count(verdict.verdict, verdict.fired, verdict.skipped);
  texts_.Add(verdict, journal, order.faults, audit_);
  return {};
}

void LifecycleSweep::Conclude() {
  for (std::size_t i = 0; i < benign_.size(); ++i) {
    if (!benign_seen_[i]) ++audit_->skipped["benign calls that no planned fault hits: " + lifecycle_.benign()[i]];
  }
  if (!audit_->findings.empty()) {
    audit_->outcome = AuditOutcome::Findings;
  } else if (audit_->fired == 0 || audit_->fired != audit_->trials) {
    audit_->outcome = AuditOutcome::NotExercised;
    audit_->message = audit_->trials == 0 ? "no call of the lifecycle can fail"
                                          : std::to_string(audit_->trials - audit_->fired) + " of " + std::to_string(audit_->trials) +
                                                " planned faults did not fire";
    if (!audit_->drift.empty()) audit_->message += "; two fault-free runs differ: " + audit_->drift;
  } else {
    audit_->outcome = AuditOutcome::Clean;
    audit_->message = std::to_string(audit_->fired) + " faults fired, each unwound cleanly";
  }
}

}  // namespace cuaudit::harness
