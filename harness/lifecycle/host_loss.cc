// SPDX-License-Identifier: MIT
#include "harness/cycle/growth.h"
#include "harness/lifecycle/host_records.h"
#include "harness/lifecycle/trial_world.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;

constexpr Kind kCounted[] = {Kind::Mutex, Kind::DlopenReference, Kind::Thread};

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
  const bool dropped = (records.View().header().flags.load() & faults::kRecordsDropped) != 0;
  kept.net.lost = kept.net.lost || dropped;
  if (!dropped && span.end != span.first) kept.places = ChangesIn(FoldObjects(records.View().records()), span.first, span.end);
  return kept;
}

bool HostLoss::MayBe(const HostKept& trial, const HostKept& good, bool blocks) {
  if (trial.net.lost) return false;
  if (blocks && (trial.net.kept > good.net.kept || trial.net.kept_bytes > good.net.kept_bytes)) return true;
  return std::any_of(trial.places.begin(), trial.places.end(), [&](const auto& place) {
    const HostPlaceKey& key = place.first;
    const bool counted = key.rule != Rule::Leak || std::find(std::begin(kCounted), std::end(kCounted), key.kind) != std::end(kCounted);
    return counted && trial.Net(key) > Floor(good.Net(key));
  });
}

bool HostLoss::IsAsked(Kind kind) const {
  if (kind == Kind::HostHeap) return blocks_;
  return kind != Kind::FileDescriptor || descriptors_;
}

void HostLoss::Repeat(const HostKept& trial) {
  HostPlaces kept;
  for (const auto& [key, tally] : trial.places) {
    if (key.rule == Rule::Leak && !IsAsked(key.kind)) continue;
    // When the run replaced an object of another place, or closed elsewhere what a good cycle closes, the sort as a whole has not grown,
    // and nothing is reported.
    const bool counted = key.rule == Rule::Deficit || (key.rule == Rule::Leak && key.kind != Kind::HostHeap);
    if (counted && trial.Net(key) <= Floor(good_.Net(key))) continue;
    HostTally more = tally;
    if (const auto good = good_.places.find(key); good != good_.places.end()) {
      more.count -= Floor(good->second.count);
      more.bytes -= Floor(good->second.bytes);
    }
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
  finding.other = tally.other;
  if (tally.acquired.record_kind != faults::RecordKind::Empty) finding.acquired_key = SiteKey(host, tally.acquired);
  if (tally.where.record_kind != faults::RecordKind::Empty) finding.where_key = SiteKey(host, tally.where);
  if (tally.other.record_kind != faults::RecordKind::Empty) finding.other_key = SiteKey(host, tally.other);
  return finding;
}

std::vector<TrialFinding> HostLoss::Findings(const faults::JournalView& host) const {
  std::vector<TrialFinding> findings;
  if (!kept_.has_value()) return findings;
  for (const auto& [key, tally] : *kept_) {
    TrialFinding& finding = findings.emplace_back(HostFinding(key, tally, host));
    if (key.rule == Rule::Deficit) {
      finding.detail = {{key.again ? Detail::ClosedAlready : Detail::OpenAtBeginOfAudit}};
    }
    finding.detail.push_back({Detail::BeyondGoodCycle, {std::to_string(repeats_)}});
  }
  return findings;
}

namespace {

// One entry after each cycle.
struct Series {
  std::vector<std::int64_t> count;
  std::vector<std::int64_t> bytes;
  HostTally last;
};

// A place on the host gets no further cycles, so what has not stopped counts as growth.
report::Trend TrendOf(const std::vector<std::int64_t>& counts) {
  const std::int64_t least = *std::min_element(counts.begin(), counts.end());
  std::vector<std::uint64_t> live;
  live.reserve(counts.size());
  for (const std::int64_t count : counts) live.push_back(static_cast<std::uint64_t>(count - least));
  const report::Course course = JudgeEachCycle(live);
  return IsOpen(course) ? report::Trend::Growth : course.trend;
}

}  // namespace

bool AllWasSeen(const HostRecords& records, const std::vector<HostSpan>& spans) {
  if ((records.View().header().flags.load() & faults::kRecordsDropped) != 0) return false;
  return std::none_of(spans.begin(), spans.end(), [](const HostSpan& span) { return span.net.lost; });
}

bool MayGrow(const HostRecords& records, const std::vector<HostSpan>& spans, std::uint32_t warm_up) {
  for (std::size_t i = std::max(warm_up, 1U); i < spans.size(); ++i) {
    if (spans[i].net.kept > 0 || spans[i].net.kept_bytes > 0) return true;
  }
  if (spans.empty()) return false;
  const HostPlaces places = ChangesIn(FoldObjects(records.View().records()), 0, spans.back().end);
  return std::any_of(places.begin(), places.end(), [](const auto& place) { return place.second.count > 0; });
}

HostGrown GrownByPlace(const Lifecycle& lifecycle, const CycleOptions& options, bool blocks, HostRecords* records) {
  HostGrown grown;
  const Result<TrialWorld::Pointer> world = TrialWorld::Open(options.driver, false);
  if (!world.ok()) {
    grown.why_not = world.status().message();
    return grown;
  }
  records->Clear();
  const std::size_t cycles = std::size_t{std::max(options.warm_up, 1U)} + options.cycles;
  std::vector<HostSpan> spans;
  spans.reserve(cycles);
  Metering metering;
  metering.records = records;
  metering.stacks = true;
  metering.spans = &spans;
  TrialTrace trace;
  (*world)->Run(lifecycle, faults::Plan(), Stacks::None, cycles, metering, &trace);
  grown.host = records->View();
  if (spans.size() != cycles || trace.first_failed != 0 || !AllWasSeen(*records, spans)) {
    grown.why_not = Words({trace.first_failed != 0 ? Detail::FailsWithStacks : Detail::MoreThanFollowed});
    return grown;
  }
  const Ledger ledger = FoldObjects(grown.host.records());
  std::map<HostPlaceKey, Series> all;
  std::vector<std::uint64_t> ends = {0};
  for (const HostSpan& span : spans) ends.push_back(span.end);
  HostPlaces alive;
  const std::vector<HostPlaces> changes = ChangesBetween(ledger, ends, FreedMutex::Stays);
  for (std::size_t i = 0; i < cycles; ++i) {
    for (const auto& [key, change] : changes[i]) Add(change, &alive[key]);
    for (const auto& [key, tally] : alive) {
      Series& series = all[key];
      series.count.resize(i);  // a place that was not seen before starts at zero
      series.bytes.resize(i);
      series.count.push_back(tally.count);
      series.bytes.push_back(tally.bytes);
      series.last = tally;
    }
  }
  for (const auto& [key, series] : all) {
    if (key.kind == driver::Kind::HostHeap && !blocks) continue;
    if (key.rule == Rule::Deficit) continue;  // only a faulted cycle is compared with a good one
    if (key.rule != Rule::Leak) {
      grown.findings.push_back(HostFinding(key, series.last, grown.host));
      continue;
    }
    const std::vector<std::int64_t> count = AfterWarmUp(std::span<const std::int64_t>(series.count), options.warm_up);
    const std::vector<std::int64_t> bytes = AfterWarmUp(std::span<const std::int64_t>(series.bytes), options.warm_up);
    const report::Trend of_count = TrendOf(count);
    const report::Trend of_bytes = TrendOf(bytes);
    if (of_count == report::Trend::Steady && of_bytes == report::Trend::Steady) continue;
    TrialFinding finding = HostFinding(key, series.last, grown.host);
    finding.rule = of_count == report::Trend::Growth || of_bytes == report::Trend::Growth ? Rule::Growth : Rule::Bounded;
    finding.count = static_cast<std::uint64_t>(std::max<std::int64_t>(count.back() - count.front(), 1));
    finding.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes.back() - bytes.front(), 0));
    finding.detail = {AliveAfterEach(std::span<const std::int64_t>(series.count))};
    grown.findings.push_back(std::move(finding));
  }
  return grown;
}

}  // namespace cuaudit::harness
