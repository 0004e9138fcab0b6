// SPDX-License-Identifier: MIT
#include "harness/lifecycle/host_loss.h"

#include <algorithm>
#include <utility>

namespace cuaudit::harness {
namespace {

using driver::Kind;

constexpr Kind kCounted[] = {Kind::Mutex, Kind::DlopenReference, Kind::Thread};

HostTally At(const HostPlaces& places, const HostPlaceKey& key) {
  const auto found = places.find(key);
  return found == places.end() ? HostTally() : found->second;
}

// A good cycle that releases what an earlier cycle kept is no measure.
std::int64_t Floor(std::int64_t value) { return std::max<std::int64_t>(value, 0); }

// True for memory of a failed expectation in the results of its test.
bool IsGoogleTests(const report::Acquired& place) {
  return std::any_of(place.stack.begin(), place.stack.end(), [](const report::Frame& frame) {
    return frame.function.find("testing::internal::AssertHelper::operator=") != std::string::npos ||
           frame.function.find("testing::UnitTest::AddTestPartResult") != std::string::npos;
  });
}

}  // namespace

std::vector<TrialFindingText> HostTexts(const std::vector<TrialFinding>& findings, const faults::JournalView& host, SiteTexts* sites,
                                        std::size_t* of_googletest) {
  std::vector<TrialFindingText> texts = Texts(findings, host, sites);
  *of_googletest += std::erase_if(texts, [](const TrialFindingText& one) { return IsGoogleTests(one.acquired); });
  return texts;
}

HostKept KeptBy(const HostRecords& records, const HostSpan& span) {
  HostKept kept = {span.net, {}};
  if ((records.View().header().flags.load() & faults::kRecordsDropped) != 0) {
    kept.net.lost = true;
    return kept;
  }
  if (span.end != span.first) kept.fold.Add(records.View().Part(span.first, span.end - span.first).records());
  return kept;
}

bool HostLoss::MayBe(const HostKept& trial, const HostKept& good, bool blocks) {
  if (trial.net.lost) return false;
  if (blocks && (trial.net.kept > good.net.kept || trial.net.kept_bytes > good.net.kept_bytes)) return true;
  if (trial.fold.Violations() > good.fold.Violations()) return true;
  return std::any_of(std::begin(kCounted), std::end(kCounted),
                     [&](Kind kind) { return trial.fold.Net(kind) > Floor(good.fold.Net(kind)); });
}

bool HostLoss::IsAsked(Kind kind) const {
  if (kind == Kind::HostHeap) return blocks_;
  return kind != Kind::FileDescriptor || descriptors_;
}

void HostLoss::Repeat(const HostKept& trial) {
  HostPlaces kept;
  for (const auto& [key, tally] : trial.fold.places()) {
    if (!IsAsked(key.kind)) continue;
    // Replacing an object from before the run shows no release of it. Then the kind as a whole has not grown, and nothing is reported.
    const bool counted = key.rule == Rule::Leak && key.kind != Kind::HostHeap;
    if (counted && trial.fold.Net(key.kind) <= Floor(good_.fold.Net(key.kind))) continue;
    const HostTally good = At(good_.fold.places(), key);
    HostTally more = tally;
    more.count -= Floor(good.count);
    more.bytes -= Floor(good.bytes);
    if (kept_.has_value()) {
      const auto before = kept_->find(key);
      if (before == kept_->end()) continue;
      more.count = std::min(more.count, before->second.count);
      more.bytes = std::min(more.bytes, before->second.bytes);
    }
    if (more.count > 0 || more.bytes > 0) kept[key] = more;
  }
  kept_ = std::move(kept);
  ++repeats_;
}

TrialFinding HostFinding(const HostPlaceKey& key, const HostTally& tally, const faults::JournalView& host) {
  TrialFinding finding;
  finding.rule = key.rule;
  finding.kind = key.kind;
  finding.count = static_cast<std::uint64_t>(std::max<std::int64_t>(tally.count, 1));  // a block that grew in place counts as one
  finding.bytes = static_cast<std::uint64_t>(Floor(tally.bytes));
  finding.acquired = tally.acquired;
  finding.where = tally.where;
  if (tally.acquired.record_kind != faults::RecordKind::Empty) finding.acquired_key = SiteKey(host, tally.acquired);
  if (tally.where.record_kind != faults::RecordKind::Empty) finding.where_key = SiteKey(host, tally.where);
  return finding;
}

std::vector<TrialFinding> HostLoss::Findings(const faults::JournalView& host) const {
  std::vector<TrialFinding> findings;
  if (!kept_.has_value()) return findings;
  for (const auto& [key, tally] : *kept_) {
    findings.push_back(HostFinding(key, tally, host));
    findings.back().detail = "by the faulted cycle, beyond what a good one does, and by each of " + std::to_string(repeats_) + " repeats";
  }
  return findings;
}

}  // namespace cuaudit::harness
