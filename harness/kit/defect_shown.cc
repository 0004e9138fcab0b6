// SPDX-License-Identifier: MIT
#include "harness/kit/defect_shown.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "faults/plan/plan.h"
#include "harness/kit/replay_calls.h"
#include "harness/ledger/ledger.h"
#include "harness/lifecycle/in_process_runner.h"
#include "harness/lifecycle/trial_world.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/run/trial.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {
namespace {

bool IsLeft(const Object& object) {
  return object.state != State::Released && !IsHost(object) && driver::DiesWithOf(object.kind) != driver::DiesWith::Parent;
}

void CountLeft(const Ledger& ledger, DefectShown* shown) {
  for (const Object& object : ledger.objects) {
    if (IsLeft(object)) shown->left[static_cast<std::size_t>(object.kind)] += object.references;
  }
}

bool IsFailing(const CallList& list, const Step* step) {
  return std::any_of(list.stages.begin(), list.stages.end(),
                     [&](const Stage& stage) { return stage.failing && &stage.failing->step == step; });
}

// The list as a lifecycle. The faults of a trial count the calls of its first cycle.
Lifecycle AsLifecycle(CallReplay* replay) {
  Lifecycle lifecycle("reducer");
  lifecycle.Init([replay](DriverRef driver) { return replay->Run(driver); });
  return lifecycle;
}

}  // namespace

std::vector<Wrong> Together(std::vector<Wrong> wrong) {
  const auto key = [](const Wrong& one) { return std::tuple(one.rule, one.kind); };
  std::stable_sort(wrong.begin(), wrong.end(), [&](const Wrong& a, const Wrong& b) { return key(a) < key(b); });
  std::vector<Wrong> together;
  for (const Wrong& one : wrong) {
    if (!together.empty() && key(together.back()) == key(one)) together.back().count += one.count;
    else together.push_back(one);
  }
  return together;
}

Result<DefectShown> DefectJudge::Look(const CallList& list) {
  ++looks_;
  return list.has_faults() ? LookAtTrial(list) : LookWithoutFaults(list);
}

Result<DefectShown> DefectJudge::LookAtTrial(const CallList& list) {
  CallReplay replay(list);
  if (!replay.roomy()) return Status(Exit::Environment, "no address space for the memory of the program");
  const Lifecycle lifecycle = AsLifecycle(&replay);
  cuaudit::SweepOptions how;
  how.host = false;
  how.driver = AuditedDriver::Simulated;
  InProcessRunner runner(lifecycle, how, {}, false, &sites_);
  Result<Rehearsal> rehearsal = runner.Rehearse();
  DefectShown shown;
  if (!rehearsal.ok()) return shown;  // the call fails without a fault, too: nothing is shown
  CountLeft(rehearsal->run.ledger, &shown);
  const std::vector<Rehearsed> tables = Tables(*rehearsal);
  const std::vector<std::string> faults = FaultsOf(list);
  Status status = runner.Give({{0, faults, 1, false}});
  if (!status.ok()) return status;
  const Result<TrialSeen> seen = runner.Next();
  if (!seen.ok()) return seen.status();
  for (const Step* const step : replay.unlike()) {
    if (!IsFailing(list, step)) shown.unlike.push_back(step);
  }
  if (seen->settled) return shown;
  const std::vector<std::uint64_t> anywhere(faults.size());
  const TrialResult result = JudgeTrial(0, faults, anywhere, tables.front(), seen->seen, options_, &sites_);
  if (!result.fired) return shown;
  for (const TrialFindingText& finding : result.findings) shown.wrong.push_back({finding.rule, finding.kind, finding.count});
  shown.wrong = Together(std::move(shown.wrong));
  return shown;
}

// One cycle in a world of its own. What it leaves is wrong, and so is what the ledger objects to.
Result<DefectShown> DefectJudge::LookWithoutFaults(const CallList& list) {
  CallReplay replay(list);
  if (!replay.roomy()) return Status(Exit::Environment, "no address space for the memory of the program");
  const Lifecycle lifecycle = AsLifecycle(&replay);
  Result<TrialWorld::Pointer> world = TrialWorld::Open(AuditedDriver::Simulated, false);
  if (!world.ok()) return world.status();
  TrialTrace trace;
  (*world)->Run(lifecycle, faults::Plan(), Stacks::None, 1, Metering(), &trace);
  if (!trace.opened) return Status(Exit::Environment, "the simulated driver got no address space (limit on virtual memory?)");
  const Ledger ledger = FoldObjects((*world)->Journal().records());
  DefectShown shown;
  shown.unlike = replay.unlike();
  CountLeft(ledger, &shown);
  for (const Violation& violation : ledger.violations) shown.wrong.push_back({violation.rule, violation.kind, 1});
  for (std::size_t i = 0; i < driver::kKindCount; ++i) {
    if (shown.left[i] != 0) shown.wrong.push_back({Rule::LeftAtExit, static_cast<driver::Kind>(i), shown.left[i]});
  }
  shown.wrong = Together(std::move(shown.wrong));
  return shown;
}

}  // namespace cuaudit::harness
