// SPDX-License-Identifier: MIT
// The trials of cuaudit/fuzz.h. A trial that settles at once is done. SweepLifecycle judges any other trial as a replay, so that fuzzing
// and sweeping never disagree about what a finding is.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/plan/fault.h"
#include "harness/lifecycle/sweep_lifecycle.h"
#include "harness/lifecycle/trial_evidence.h"
#include "harness/lifecycle/trial_world.h"
#include "harness/sweep/plan/make_plan.h"
#include "include/cuaudit/fuzz.h"

namespace cuaudit {

namespace {

using namespace cuaudit::harness;
using driver::BaseId;
using faults::Fault;
using faults::How;
using faults::Record;

constexpr std::size_t kMostRemembered = std::size_t{1} << 16;

// A call that may fail next.
struct Candidate {
  BaseId base{};
  std::uint32_t occurrence = 0;
};

// Calls of the first cycle that can fail, after the record that the newest fault hit.
std::vector<Candidate> CandidatesOf(const faults::JournalView& journal, const TrialTrace& trace, std::size_t faults) {
  std::vector<Candidate> candidates;
  std::unordered_map<std::size_t, std::uint32_t> occurrences;
  const CycleTrace& cycle = trace.cycle[0];
  std::size_t hit = 0;
  const faults::JournalView part = journal.Part(cycle.first_record, cycle.end_record - cycle.first_record);
  for (const Record& record : part.records()) {
    if (!IsProgramCall(record)) continue;
    const BaseId base = BaseOf(record);
    const std::uint32_t occurrence = ++occurrences[driver::Index(base)];
    hit = std::max<std::size_t>(hit, record.fault);
    if (record.fault != 0 || hit < faults || driver::LegalCodes(base).empty()) continue;
    if (driver::EffectOf(base).effect != driver::Effect::Describes) candidates.push_back({base, occurrence});
  }
  return candidates;
}

Fault MakeFault(const Candidate& candidate, const FaultChoice::One& choice, const FuzzOptions& options) {
  static constexpr How kHows[] = {How::Refuse, How::RefuseGarbage, How::After, How::Persist, How::Burst, How::Sticky};
  Fault fault = {.base = candidate.base, .occurrence = candidate.occurrence, .how = kHows[choice.how % std::size(kHows)]};
  if (fault.how == How::RefuseGarbage && !options.garbage) fault.how = How::Refuse;
  if (fault.how == How::Burst) fault.burst = 2U + choice.how / 64U;
  const std::span<const CUresult> codes = driver::LegalCodes(candidate.base);
  fault.code = fault.how == How::Sticky ? CUDA_ERROR_LAUNCH_FAILED : codes[choice.code % codes.size()];
  return fault;
}

}  // namespace

struct Fuzzer::Parts {
  Parts(Lifecycle of, FuzzOptions with) : lifecycle(std::move(of)), options(with) {}

  // Runs the lifecycle under `plan`; false when there is no world.
  bool Run(const faults::Plan& plan) {
    world->Run(lifecycle, plan, Stacks::None, kMostCycles, Metering(), &trace);
    return trace.opened && trace.prepared;
  }
  const std::vector<Candidate>& After(const std::string& key, const faults::Plan& plan);
  FuzzTrial Judge(FuzzTrial trial);
  Lifecycle lifecycle;
  FuzzOptions options;
  TrialWorld::Pointer world;
  std::vector<Benign> benign;
  std::string broken;  // why no trial is possible
  TrialTrace trace;
  std::unordered_map<std::string, std::vector<Candidate>> after;  // by the preceding faults
  std::unordered_set<std::string> judged;                         // fault lists judged without a finding
};

const std::vector<Candidate>& Fuzzer::Parts::After(const std::string& key, const faults::Plan& plan) {
  const auto known = after.find(key);
  if (known != after.end()) return known->second;
  if (after.size() == kMostRemembered) after.clear();
  std::vector<Candidate> candidates;
  if (Run(plan) && AllFired(world->Journal(), plan.size())) candidates = CandidatesOf(world->Journal(), trace, plan.size());
  return after.emplace(key, std::move(candidates)).first->second;
}

// A fault list without a finding has none the next time: lifecycles are deterministic, or the sweep reports them as drifting.
FuzzTrial Fuzzer::Parts::Judge(FuzzTrial trial) {
  std::string key;
  for (const std::string& fault : trial.faults) key += fault + ";";
  if (judged.count(key) != 0) return trial;
  Audit audit;
  SweepLifecycle(lifecycle, cuaudit::SweepOptions(), trial.faults, &audit);
  if (audit.run != nullptr) {
    report::Run run = *audit.run;
    // The command line of a fuzzer does not show the finding again.
    for (report::Finding& finding : run.findings)
      finding.reproduce = "this input, or CUAUDIT_FAULT='" + key.substr(0, key.size() - 1) + "' with a test that sweeps this lifecycle";
    audit.run = std::make_shared<const report::Run>(std::move(run));
  }
  if (!audit.verdicts.empty()) trial.verdict = audit.verdicts.begin()->first;
  trial.finding = audit.outcome == AuditOutcome::Findings || audit.outcome == AuditOutcome::Error;
  trial.text = trial.finding ? audit.Text() : std::string();
  if (judged.size() == kMostRemembered) judged.clear();
  if (!trial.finding) judged.insert(std::move(key));
  return trial;
}

Fuzzer::Fuzzer(Lifecycle lifecycle, FuzzOptions options) : parts_(std::make_unique<Parts>(std::move(lifecycle), options)) {
  Status status = AddBenignOf(parts_->lifecycle, &parts_->benign);
  Result<TrialWorld::Pointer> world = TrialWorld::Open(AuditedDriver::Simulated, false);
  if (status.ok() && !world.ok()) status = world.status();
  if (!status.ok()) {
    parts_->broken = status.message();
    return;
  }
  parts_->world = std::move(*world);
  const std::string& name = parts_->lifecycle.name();
  if (!parts_->Run(faults::Plan())) {
    parts_->broken = name + ": " + Words({parts_->trace.opened ? Detail::NotPrepared : Detail::NoAddressSpace}) + "\n";
  } else if (parts_->trace.first_failed != 0) {
    parts_->broken = name + ": " + Words(FailedWithoutFault(parts_->trace, {})) + "\n";
  } else if (BalanceOf(parts_->world->Journal(), parts_->trace) != Balance::Spotless) {
    parts_->broken = name + ": " + Words({Detail::NotSpotless}) + "\n";
  }
  parts_->after.emplace(std::string(), CandidatesOf(parts_->world->Journal(), parts_->trace, 0));
  if (parts_->broken.empty() && parts_->after.at("").empty()) parts_->broken = name + ": " + Words({Detail::NothingCanFail}) + "\n";
}

Fuzzer::~Fuzzer() = default;

FuzzTrial Fuzzer::Try(const FaultChoice& choice) {
  FuzzTrial trial;
  if (!parts_->broken.empty()) return {true, false, "broken", {}, parts_->broken};
  faults::Plan plan;
  std::vector<Fault> planned;
  std::string key;
  for (std::size_t i = 0; i < choice.count; ++i) {
    const std::vector<Candidate>& candidates = parts_->After(key, plan);
    if (candidates.empty()) break;
    const FaultChoice::One& one = choice.fault[i];
    const Fault fault = MakeFault(candidates[one.call % candidates.size()], one, parts_->options);
    if (!plan.Add(fault)) break;
    planned.push_back(fault);
    trial.faults.push_back(TextOf(fault));
    key += trial.faults.back() + ";";
  }
  if (!parts_->Run(plan)) return {true, false, "broken", {}, parts_->lifecycle.name() + ": " + Words({Detail::NoWorld}) + "\n"};
  if (trial.faults.empty()) {
    trial.verdict = "fault_free";
    trial.finding = BalanceOf(parts_->world->Journal(), parts_->trace) != Balance::Spotless;
    if (trial.finding) trial.text = parts_->lifecycle.name() + ": " + Words({Detail::SpotlessNoLonger}) + "\n";
    return trial;
  }
  trial.fired = AllFired(parts_->world->Journal(), plan.size());
  const DeclaredFaults declared = DeclaredOf(parts_->benign, trial.faults);
  parts_->trace.cycle[0].benign_faults = declared.surely;
  const std::optional<Settled> settled = Settle(parts_->lifecycle, declared, planned, parts_->world->Journal(), parts_->trace);
  const bool absorbed = settled && settled->verdict == Verdict::Absorbed;
  if (!settled || (absorbed && !parts_->benign.empty())) return parts_->Judge(std::move(trial));
  trial.verdict = Name(settled->verdict);
  return trial;
}

}  // namespace cuaudit
