// SPDX-License-Identifier: MIT
#include "harness/kit/defect_shown.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "faults/plan/plan.h"
#include "harness/kit/replay_calls.h"
#include "harness/ledger/host_deed.h"
#include "harness/ledger/ledger.h"
#include "harness/lifecycle/in_process_runner.h"
#include "harness/lifecycle/trial_world.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/run/trial.h"
#include "include/cuaudit/lifecycle.h"
#include "reports/defect_words.h"

namespace cuaudit::harness {
namespace {

void CountLeft(const Ledger& ledger, DefectShown* shown) {
  for (const Object& object : ledger.objects) {
    if (object.state == State::Released || IsHost(object) || driver::DiesWithOf(object.kind) == driver::DiesWith::Parent) continue;
    shown->left[static_cast<std::size_t>(object.kind)] += object.references;
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
  CallReplay replay(list, one_place_);
  if (!replay.roomy()) return Status(Exit::Environment, "no address space for the memory of the program");
  return list.has_faults() ? LookAtTrial(list, replay) : LookWithoutFaults(replay);
}

Result<DefectShown> DefectJudge::LookAtTrial(const CallList& list, CallReplay& replay) {
  const Lifecycle lifecycle = AsLifecycle(&replay);
  cuaudit::SweepOptions how = {.host = false, .driver = AuditedDriver::Simulated};
  InProcessRunner runner(lifecycle, how, {}, false, &sites_);
  Result<Rehearsal> rehearsal = runner.Rehearse();
  DefectShown shown;
  if (!rehearsal.ok()) {  // a call that is to fail does so without a fault, too
    for (const Step* const step : replay.unlike()) {
      if (IsFailing(list, step))
        shown.why_nothing = std::string(driver::Name(step->call)) + ", which is to fail, fails without the fault, too";
    }
    if (shown.why_nothing.empty()) shown.why_nothing = rehearsal.status().message();
    return shown;
  }
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
  if (!result.fired) {
    shown.why_nothing = "the fault does not fire";
    return shown;
  }
  for (const TrialFindingText& finding : result.findings) shown.wrong.push_back({finding.rule, finding.kind, finding.count});
  shown.wrong = Together(std::move(shown.wrong));
  return shown;
}

// One cycle in a world of its own. What it leaves is wrong, and so is what the ledger objects to.
Result<DefectShown> DefectJudge::LookWithoutFaults(CallReplay& replay) {
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

namespace {

std::vector<std::string> FaultsOfFinding(const report::Finding& finding) {
  std::vector<std::string> faults;
  if (finding.fault) faults.push_back(finding.fault->text);
  for (const report::Fault& fault : finding.then) faults.push_back(fault.text);
  return faults;
}

Wrong WrongOf(const report::Run& run, const report::Finding& finding) {
  const driver::Kind kind = driver::KindFromName(finding.kind);
  if (finding.rule != Rule::Growth) return {finding.rule, kind, finding.count};
  // What grows with each cycle is left by each.
  const auto growth = run.per_cycle.find(finding.kind);
  const double each = growth == run.per_cycle.end() ? 1 : growth->second;
  return {Rule::LeftAtExit, kind, static_cast<std::uint64_t>(std::max(1.0, std::round(each)))};
}

}  // namespace

std::vector<Wrong> WrongIn(const report::Run& run, const std::vector<std::string>& faults) {
  std::vector<Wrong> wrong;
  for (const report::Finding& finding : run.findings) {
    if (FaultsOfFinding(finding) == faults) wrong.push_back(WrongOf(run, finding));
  }
  return Together(std::move(wrong));
}

bool IsSamePlace(const report::Acquired& a, const report::Acquired& b) {
  const auto same = [](const report::Frame& one, const report::Frame& other) {
    return one.module == other.module && one.offset == other.offset && one.function == other.function && one.line == other.line;
  };
  return a.call == b.call && std::equal(a.stack.begin(), a.stack.end(), b.stack.begin(), b.stack.end(), same);
}

namespace {

// What the trial shows of objects that were acquired where the defect acquires them.
std::vector<Wrong> WrongAt(const report::Run& replayed, const WantedDefect& defect) {
  std::vector<Wrong> wrong;
  for (const report::Finding& finding : replayed.findings) {
    const auto same = [&](const report::Acquired& one) { return IsSamePlace(one, finding.acquired); };
    if (FaultsOfFinding(finding) == defect.faults && std::any_of(defect.lost.begin(), defect.lost.end(), same)) {
      wrong.push_back(WrongOf(replayed, finding));
    }
  }
  return Together(std::move(wrong));
}

}  // namespace

Status TakeCounts(const report::Run& replayed, WantedDefect* defect) {
  const std::vector<Wrong> shown = WrongIn(replayed, defect->faults);
  const std::vector<Wrong> of_defect = WrongAt(replayed, *defect);
  for (Wrong& one : defect->wanted) {
    const auto same = [&](const Wrong& other) { return other.rule == one.rule && other.kind == one.kind; };
    const auto here = std::find_if(of_defect.begin(), of_defect.end(), same);
    if (here != of_defect.end()) {
      one.count = here->count;
      continue;
    }
    const auto found = std::find_if(shown.begin(), shown.end(), same);
    if (found == shown.end()) {
      return {Exit::Environment, "the program does not show the defect any more: expected " + InWords(*defect, defect->wanted) +
                                     ", found " + InWords(*defect, shown)};
    }
    one.count = found->count;
  }
  return {};
}

Rule RuleInReport(const WantedDefect& defect, const Wrong& wrong) {
  return wrong.rule == Rule::LeftAtExit && defect.root.rule == Rule::Growth ? Rule::Growth : wrong.rule;
}

bool IsByPlace(const WantedDefect& defect) {
  return std::any_of(defect.wanted.begin(), defect.wanted.end(), [](const Wrong& one) { return one.rule == Rule::Deficit; });
}

std::string InWords(const WantedDefect& defect, const std::vector<Wrong>& wrong) {
  std::string text;
  for (const Wrong& one : wrong) {
    text += (text.empty() ? "" : ", ") + std::string(words::Name(RuleInReport(defect, one))) + " " + std::to_string(one.count);
    if (one.kind != driver::Kind::None) text += " " + std::string(driver::Name(one.kind));
  }
  return text.empty() ? "nothing" : text;
}

Result<WantedDefect> FindDefect(const report::Audit& audit, const std::string& fingerprint, const std::string& source) {
  for (const report::Case& one : audit.cases) {
    for (const report::Run& run : one.runs) {
      const auto same = [&](const report::Defect& defect) { return defect.fingerprint == fingerprint; };
      const auto found = std::find_if(run.defects.begin(), run.defects.end(), same);
      if (found == run.defects.end()) continue;
      WantedDefect wanted;
      wanted.run = run;
      wanted.defect = *found;
      wanted.root = report::RootOf(run, *found);
      wanted.faults = FaultsOfFinding(wanted.root);
      for (const report::Member& member : found->members) {
        for (const std::size_t index : member.findings) {
          const report::Finding& finding = run.findings[index];
          if (FaultsOfFinding(finding) != wanted.faults) continue;
          const Wrong wrong = WrongOf(run, finding);
          std::string name = std::string(words::Name(finding.rule)) + " " + std::to_string(finding.count);
          if (!finding.kind.empty()) name += " " + finding.kind;
          if (words::SortOf(finding.rule) == words::RuleSort::Program) {
            wanted.left_out.push_back(Words({Detail::OfProgram, {name}}));
          } else if (IsHost(wrong.kind) || wrong.kind == driver::Kind::Block) {
            wanted.left_out.push_back(Words({Detail::OfHost, {name}}));
          } else if (finding.rule == Rule::DestroyedUnderUser && wrong.kind == driver::Kind::HostRegistration) {
            wanted.left_out.push_back(Words({Detail::OfUnregisteredMemory, {name}}));
          } else {
            wanted.wanted.push_back(wrong);
            if (!finding.acquired.stack.empty()) wanted.lost.push_back(finding.acquired);
          }
        }
      }
      wanted.wanted = Together(std::move(wanted.wanted));
      if (wanted.wanted.empty()) {
        return Status(Exit::Environment, fingerprint + ": no kit: " + (wanted.left_out.empty() ? "no finding" : wanted.left_out.front()));
      }
      for (const std::string& text : wanted.faults) {
        if (faults::HostFaultOf(std::string_view(text)) != nullptr) {
          return Status(Exit::Environment, fingerprint + ": no kit: what fails is " + text + ", no driver call");
        }
      }
      return wanted;
    }
  }
  return Status(Exit::Usage, source + ": expected a defect with the fingerprint '" + fingerprint + "'");
}

}  // namespace cuaudit::harness
