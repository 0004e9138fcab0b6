// SPDX-License-Identifier: MIT
// The part of InProcessRunner that checks what trials keep of the host each time they are repeated.
#include <algorithm>

#include "harness/defect/blame.h"
#include "harness/lifecycle/in_process_runner.h"
#include "harness/verdict/surplus.h"

namespace cuaudit::harness {
namespace {

bool IsKind(const MeterFinding& meter, const TrialFinding& place) {
  return meter.kind == (place.kind == driver::Kind::DlopenReference ? "loaded_object" : driver::Name(place.kind));
}

}  // namespace

Metering InProcessRunner::MeteringOfRuns() const {
  Metering metering;
  if (!host_.wanted()) return metering;
  metering.first = host_.sees_blocks() ? kCountedMeters : kTrialMeters;
  metering.records = host_.records();
  metering.stacks = host_stacks_;
  metering.count_turns = host_faults_;
  return metering;
}

Status InProcessRunner::CheckHostFaults() const {
  if (!host_faults_ || host_.records() != nullptr) return {};
  const std::string why = !host_.wanted() ? "SweepOptions::host without isolate" : Words(host_.unmetered().front());
  return {Exit::Usage, "faults of the host: expected cuaudit's host drop-in at work: " + why};
}

Status InProcessRunner::KnowGoodByPlace() {
  if (good_by_place_.has_value()) return {};
  host_stacks_ = true;
  for (int i = 0; i < 2; ++i) {  // the second run shows releases of what the first one kept
    const Result<Ending> ending = Execute(faults::Plan(), Stacks::None);
    if (!ending.ok()) return ending.status();
  }
  host_stacks_ = false;
  good_by_place_ = KeptBy(*host_.records(), trace_.cycle[0].seen);
  return {};
}

// Misuse of a mutex is a finding without any fault. What a good cycle keeps may be a cache, so only RunCycles judges that.
Status InProcessRunner::FindFaultFreeHost(std::vector<TrialFindingText>* findings) {
  if (host_.records() == nullptr || good_kept_.fold.Violations() == 0) return {};
  Status status = KnowGoodByPlace();
  if (!status.ok()) return status;
  std::vector<TrialFinding> found;
  for (const auto& [key, tally] : good_by_place_->fold.places()) {
    if (key.rule != Rule::Leak) found.push_back(HostFinding(key, tally, host_.records()->View()));
  }
  *findings = HostTexts(found);
  return {};
}

std::vector<TrialFindingText> InProcessRunner::HostTexts(const std::vector<TrialFinding>& places) {
  std::size_t of_googletest = 0;
  std::vector<TrialFindingText> texts = harness::HostTexts(places, host_.records()->View(), sites_, &of_googletest);
  if (of_googletest != 0) Count(Reason::GoogleTestBlocks, of_googletest, &skipped_);
  return texts;
}

Status InProcessRunner::RepeatByMeters(bool balanced, std::vector<MeterFinding>* meters) {
  const HostMeterSet asked = genuine_ ? (balanced ? kCountedMeters : kLibraryMeters) : (balanced ? kTrialMeters : kCountedMeters);
  HostExcess excess(trace_.cycle[0].host, good_host_, asked);
  for (std::size_t i = 0; i < excess.repeats_wanted() && !excess.empty(); ++i) {
    const Result<Ending> ending = Execute(plan_, i + 1 >= HostExcess::kRepeats ? Stacks::All : Stacks::None);
    if (!ending.ok()) return ending.status();
    excess.Repeat(trace_.cycle[0].host, trace_.cycle[0].heap_bytes);
  }
  excess.DropWhatDoesNotAddUp();
  *meters = excess.Findings();
  return {};
}

Status InProcessRunner::RepeatByPlace(bool blocks, bool descriptors, std::vector<TrialFinding>* places) {
  Status status = KnowGoodByPlace();
  host_stacks_ = true;
  Result<Ending> ending = Ending();
  if (status.ok()) ending = Execute(plan_, Stacks::None);
  HostLoss loss(good_by_place_.value_or(HostKept()), blocks, descriptors);
  for (std::size_t i = 0; status.ok() && ending.ok() && i < HostLoss::kRepeats && !loss.empty(); ++i) {
    ending = Execute(plan_, i + 1 == HostLoss::kRepeats ? Stacks::All : Stacks::None);
    if (ending.ok()) loss.Repeat(KeptBy(*host_.records(), trace_.cycle[0].seen));
  }
  host_stacks_ = false;
  if (!status.ok()) return status;
  if (!ending.ok()) return ending.status();
  if (!loss.empty()) *places = loss.Findings(host_.records()->View());
  return {};
}

Status InProcessRunner::Repeat(TrialResult* trial) {
  if (!host_.wanted() || !trial->fired || died_ || trace_.lost != CUDA_SUCCESS || !trace_.cycle[0].finished) return {};
  // Memory may belong to a driver object that stays, and contexts of a genuine driver have threads and descriptors. So one loss is reported
  // only once.
  const faults::JournalView journal = world_->Journal();
  const bool balanced = trial->verdict != Verdict::ReleaseRefused && trial->verdict != Verdict::RetainedForRetry &&
                        BalanceOf(journal, trace_) == Balance::Spotless &&
                        std::none_of(journal.records().begin(), journal.records().end(), MakesUnownedHolder);
  if (!balanced) trial->skipped.push_back(Reason::ObjectsFirst);
  const bool blocks = balanced && host_.sees_blocks();
  bool may_have_places = false;
  if (HostRecords* const records = host_.records()) {
    const HostKept kept = KeptBy(*records, trace_.cycle[0].seen);
    may_have_places = HostLoss::MayBe(kept, good_kept_, blocks);
    if (kept.net.lost) trial->skipped.push_back(Reason::PlacesBeyond);
  }
  std::vector<MeterFinding> meters;
  Status status = RepeatByMeters(balanced, &meters);
  std::vector<TrialFinding> places;
  if (status.ok() && host_.records() != nullptr && (may_have_places || !meters.empty())) {
    const auto of_descriptors = [](const MeterFinding& one) { return one.kind == driver::Name(driver::Kind::FileDescriptor); };
    status = RepeatByPlace(blocks, std::any_of(meters.begin(), meters.end(), of_descriptors), &places);
  }
  if (!status.ok()) return status;
  if ((meters.empty() && places.empty()) || !host_.alone()) return {};
  for (const TrialFinding& place : places) std::erase_if(meters, [&](const MeterFinding& meter) { return IsKind(meter, place); });
  std::vector<TrialFindingText> found;
  if (!places.empty()) found = HostTexts(places);
  for (const MeterFinding& meter : meters) found.push_back(TextOf(meter));
  if (found.empty()) return {};
  // The last repeat had call stacks.
  if (trial->fault_key == 0) NamePlaces(ObserveCycle(world_->Journal(), trace_, Ending()), sites_, trial);
  for (TrialFindingText& one : found) one.blame = BlameForLoss({one.acquired->stack, trial->fault_site->stack, {}, 0, {}});
  std::move(found.begin(), found.end(), std::back_inserter(trial->findings));
  const bool quiet = trial->verdict == Verdict::Pass || trial->verdict == Verdict::Absorbed || trial->verdict == Verdict::Benign ||
                     trial->verdict == Verdict::ReleaseRefused;
  if (quiet) trial->verdict = Verdict::Leak;
  return {};
}

}  // namespace cuaudit::harness
