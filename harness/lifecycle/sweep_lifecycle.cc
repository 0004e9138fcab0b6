// SPDX-License-Identifier: MIT
#include "harness/lifecycle/sweep_lifecycle.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "faults/plan/fault.h"
#include "harness/lifecycle/audit_report.h"
#include "harness/lifecycle/in_process_runner.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {
namespace {

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

harness::SweepOptions EngineOptions(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, std::vector<Benign> benign) {
  harness::SweepOptions engine;
  engine.plan.hows = options.hows;
  engine.plan.all_codes = options.all_codes;
  engine.plan.calls = options.calls;
  engine.plan.limit = options.limit;
  engine.plan.prune = PruneOf(options.prune);
  engine.judge.abandoned_is_leak = true;  // a step returns to its caller, whatever happens
  engine.judge.any_code = lifecycle.any_code();
  engine.depth = options.depth;
  engine.benign = std::move(benign);
  return engine;
}

bool AsksForHost(const std::vector<std::string>& hows, const std::vector<std::string>& only) {
  const auto asked = [](const std::string& how) { return faults::HostFaultAsked(how) != nullptr; };
  const auto is_one = [](const std::string& text) { return faults::HostFaultOf(std::string_view(text)) != nullptr; };
  return only.empty() ? std::any_of(hows.begin(), hows.end(), asked) : std::any_of(only.begin(), only.end(), is_one);
}

Status Run(SweepEngine* engine, InProcessRunner* runner) {
  while (!engine->Finished()) {
    Status status = engine->Step();
    if (status.ok()) status = runner->WhyLost(engine->total() - engine->done());
    if (!status.ok()) return status;
  }
  return {};
}

void Fail(const Status& status, Audit* audit) {
  audit->outcome = status.not_exercised() ? AuditOutcome::NotExercised : AuditOutcome::Error;
  audit->message = status.message();
}

void Conclude(bool may_drift, Audit* audit) {
  if (!audit->findings.empty()) {
    audit->outcome = AuditOutcome::Findings;
  } else if (audit->fired == 0 || audit->fired != audit->trials) {
    audit->outcome = AuditOutcome::NotExercised;
    audit->message = audit->trials == 0 ? "no call of the lifecycle can fail"
                                        : std::to_string(audit->trials - audit->fired) + " of " + std::to_string(audit->trials) +
                                              " planned faults did not fire";
  } else if (!audit->drift.empty() && !may_drift) {
    audit->outcome = AuditOutcome::NotExercised;
    audit->message = "two fault-free runs differ, so faults may have hit other calls than planned (SweepOptions::may_drift)";
  } else {
    audit->outcome = AuditOutcome::Clean;
    audit->message = std::to_string(audit->fired) + " faults fired, each unwound cleanly";
    std::uint64_t pruned = 0;
    for (const auto& [reason, count] : audit->pruned) pruned += count;
    if (pruned != 0) audit->message += "; " + std::to_string(pruned) + " pruned as equal (SweepOptions::prune = Prune::None tries them)";
  }
}

}  // namespace

Status ParseBenignOf(const Lifecycle& lifecycle, std::vector<Benign>* benign) {
  for (const std::string& text : lifecycle.benign()) {
    Result<Benign> one = ParseBenign(text, "Lifecycle::Benign");
    if (!one.ok()) return one.status();
    benign->push_back(std::move(*one));
  }
  return {};
}

void SweepLifecycle(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, const std::vector<std::string>& only, Audit* audit) {
  audit->lifecycle = lifecycle.name();
  std::vector<Benign> benign;
  Status status = ParseBenignOf(lifecycle, &benign);
  if (!status.ok()) return Fail(status, audit);
  InProcessRunner runner(lifecycle, options, benign, AsksForHost(options.hows, only), SitesOfThread());
  Result<Rehearsal> rehearsal = runner.Rehearse();
  audit->driver = runner.driver();
  if (!rehearsal.ok()) return Fail(rehearsal.status(), audit);
  audit->calls = rehearsal->run.ledger.facts.calls.size();
  if (!rehearsal->same_work) audit->drift = rehearsal->drift;

  SweepEngine engine(&runner, nullptr, EngineOptions(lifecycle, options, std::move(benign)), ReproductionOf(lifecycle.name()),
                     SitesOfThread());
  status = only.empty() ? engine.Prepare(std::move(*rehearsal), 0) : engine.PrepareOne(std::move(*rehearsal), only);
  if (status.ok()) status = Run(&engine, &runner);
  report::Run run;
  if (engine.prepared()) engine.Report(&run);
  AddReport(run, audit);
  for (const auto& [reason, count] : runner.skipped()) audit->skipped[reason] += count;
  if (!status.ok()) return Fail(status, audit);
  audit->unmetered = runner.unmetered();
  Conclude(options.may_drift, audit);
}

}  // namespace cuaudit::harness
