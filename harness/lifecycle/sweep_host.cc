// SPDX-License-Identifier: MIT
// sweep_host.cc: the trials of a LifecycleSweep and the host: what they keep of it, and which of its allocations and threads they are
// refused.
#include <algorithm>
#include <string_view>

#include "harness/lifecycle/chosen_driver.h"
#include "harness/lifecycle/lifecycle_sweep.h"
#include "harness/sweep/make_plan.h"

namespace cuaudit::harness {
namespace {

bool IsKind(const StepFinding& meter, const TrialFinding& place) {
  return meter.kind == (place.kind == driver::Kind::DlopenReference ? "loaded_object" : driver::Name(place.kind));
}

}  // namespace

Metering LifecycleSweep::MeteringOfRuns() const {
  Metering metering;
  if (!host_.wanted()) return metering;
  metering.first = host_.sees_blocks() ? kCountedMeters : kTrialMeters;
  metering.records = host_.records();
  metering.stacks = host_stacks_;
  metering.count_turns = host_faults_;
  return metering;
}

Status LifecycleSweep::CheckHostFaults(const Faults& only) {
  const auto asked = [](const std::string& how) { return faults::HostFaultAsked(how) != nullptr; };
  const auto is_one = [](const std::string& text) { return faults::HostFaultOf(std::string_view(text)) != nullptr; };
  host_faults_ =
      only.empty() ? std::any_of(options_.hows.begin(), options_.hows.end(), asked) : std::any_of(only.begin(), only.end(), is_one);
  if (!host_faults_ || host_.records() != nullptr) return {};
  const std::string why = !host_.wanted() ? "SweepOptions::host without isolate" : host_.unmetered().front();
  return {Exit::Usage, "faults of the host: expected cuaudit's host drop-in at work: " + why};
}

void LifecycleSweep::PlanHostFaults(std::vector<Faults>* trials) {
  for (const faults::HostFaultRow& row : faults::kHostFaults) {
    if (std::find(options_.hows.begin(), options_.hows.end(), row.option) == options_.hows.end()) continue;
    const std::uint32_t own = row.base == faults::kHostAllocation ? good_span_.allocations : good_span_.threads;
    if (own == 0) {
      audit_->skipped[Words(Reason::HostNoneApi, std::string(row.option))] = 1;
    }
    for (std::uint32_t i = 1; i <= own; ++i) {
      if (options_.limit != 0 && trials->size() >= options_.limit) {
        harness::Count(Reason::BeyondLimitApi, own - i + 1, &audit_->skipped);
        break;
      }
      faults::Fault fault;
      fault.base = row.base;
      fault.occurrence = i;
      fault.how = row.how;
      trials->push_back({TextOf(fault)});
    }
  }
}

Status LifecycleSweep::GoodByPlace() {
  if (good_by_place_.has_value()) return {};
  host_stacks_ = true;
  for (int i = 0; i < 2; ++i) {  // the second gives back what the first one kept, and what that was is known
    const Result<Ending> ending = Execute(faults::Plan(), Stacks::None);
    if (!ending.ok()) return ending.status();
  }
  host_stacks_ = false;
  good_by_place_ = KeptBy(*host_.records(), trace_.cycle[0].seen);
  return {};
}

// A mutex that is done wrong by is a finding without any fault; what a good cycle keeps is for RunCycles to tell from a cache.
Status LifecycleSweep::JudgeFaultFreeHost() {
  if (host_.records() == nullptr || good_kept_.fold.Violations() == 0) return {};
  Status status = GoodByPlace();
  if (!status.ok()) return status;
  std::vector<TrialFinding> findings;
  const faults::JournalView host = host_.records()->View();
  for (const auto& [key, tally] : good_by_place_->fold.places()) {
    if (key.rule != Rule::Leak) findings.push_back(HostFinding(key, tally, host));
  }
  texts_.AddHost(findings, host, TrialVerdict(), rehearsal_.journal, {}, audit_);
  return {};
}

Status LifecycleSweep::RepeatByPlace(const faults::Plan& plan, bool blocks, bool descriptors, std::vector<TrialFinding>* places) {
  Status status = GoodByPlace();
  host_stacks_ = true;
  Result<Ending> ending = Ending();
  if (status.ok()) ending = Execute(plan, Stacks::None);
  HostLoss loss(good_by_place_.value_or(HostKept()), blocks, descriptors);
  for (std::size_t i = 0; status.ok() && ending.ok() && i < HostLoss::kRepeats && !loss.empty(); ++i) {
    ending = Execute(plan, i + 1 == HostLoss::kRepeats ? Stacks::All : Stacks::None);
    if (ending.ok()) loss.Repeat(KeptBy(*host_.records(), trace_.cycle[0].seen));
  }
  host_stacks_ = false;
  if (!status.ok()) return status;
  if (!ending.ok()) return ending.status();
  if (!loss.empty()) *places = loss.Findings(host_.records()->View());
  return {};
}

Status LifecycleSweep::JudgeHost(const Faults& texts, const PlannedFaultList& planned, const faults::Plan& plan, Verdict* said) {
  if (!host_.wanted() || !trace_.cycle[0].finished) return {};
  // A driver object that stays may be held in memory that stays with it, and a genuine driver's contexts have threads and descriptors: one
  // loss is told once.
  const bool balanced =
      *said != Verdict::ReleaseRefused && *said != Verdict::RetainedForRetry && BalanceOf(world_->Journal(), trace_) == Balance::Spotless;
  const bool genuine = IsGenuine(options_.driver);
  if (!balanced) harness::Count(Reason::ObjectsFirst, 1, &audit_->skipped);
  const HostMeterSet asked = genuine ? (balanced ? kCountedMeters : kLibraryMeters) : (balanced ? kTrialMeters : kCountedMeters);
  HostExcess excess(trace_.cycle[0].host, good_host_, asked);
  bool may_have_places = false;
  const bool blocks = balanced && host_.sees_blocks();
  if (HostRecords* const records = host_.records()) {
    const HostKept kept = KeptBy(*records, trace_.cycle[0].seen);
    may_have_places = HostLoss::MayBe(kept, good_kept_, blocks);
    if (kept.net.lost) harness::Count(Reason::PlacesBeyond, 1, &audit_->skipped);
  }
  if (excess.empty() && !may_have_places) return {};
  for (std::size_t i = 0; i < excess.repeats_wanted() && !excess.empty(); ++i) {
    const Result<Ending> ending = Execute(plan, i + 1 >= HostExcess::kRepeats ? Stacks::All : Stacks::None);
    if (!ending.ok()) return ending.status();
    excess.Repeat(trace_.cycle[0].host, trace_.cycle[0].heap_bytes);
  }
  excess.DropWhatDoesNotAddUp();
  std::vector<StepFinding> meters = excess.Findings();
  std::vector<TrialFinding> places;
  if (host_.records() != nullptr && (may_have_places || !meters.empty())) {
    const auto of_descriptors = [](const StepFinding& one) { return one.kind == driver::Name(driver::Kind::FileDescriptor); };
    Status status = RepeatByPlace(plan, blocks, std::any_of(meters.begin(), meters.end(), of_descriptors), &places);
    if (!status.ok()) return status;
  }
  if ((meters.empty() && places.empty()) || !host_.alone()) return {};
  for (const TrialFinding& place : places) std::erase_if(meters, [&](const StepFinding& meter) { return IsKind(meter, place); });
  TrialVerdict verdict = JudgeTrial(lifecycle_, planned, *rehearsed_, world_->Journal(), trace_, Ending());
  verdict.findings.clear();
  verdict.notes.clear();
  verdict.step_findings = std::move(meters);
  texts_.Add(verdict, world_->Journal(), texts, audit_);
  std::size_t added = verdict.step_findings.size();
  if (!places.empty()) added += texts_.AddHost(places, host_.records()->View(), verdict, world_->Journal(), texts, audit_);
  if (added == 0) return {};
  if (*said == Verdict::Pass || *said == Verdict::Absorbed || *said == Verdict::Benign || *said == Verdict::ReleaseRefused)
    *said = Verdict::Leak;
  return {};
}

}  // namespace cuaudit::harness
