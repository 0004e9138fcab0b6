// SPDX-License-Identifier: MIT
#include "harness/lifecycle/host_growth.h"

#include <algorithm>
#include <map>

#include "harness/cycle/course.h"
#include "harness/lifecycle/host_loss.h"
#include "harness/lifecycle/trial_world.h"

namespace cuaudit::harness {
namespace {

struct Series {
  std::vector<std::int64_t> count;
  std::vector<std::int64_t> bytes;
  HostTally last;
};

// Adds one entry after each cycle. A place that was not seen before starts at zero.
void Append(const HostFold& fold, std::size_t cycle, std::map<HostPlaceKey, Series>* all) {
  for (const auto& [key, tally] : fold.places()) {
    Series& series = (*all)[key];
    series.count.resize(cycle);
    series.bytes.resize(cycle);
    series.count.push_back(tally.count);
    series.bytes.push_back(tally.bytes);
    series.last = tally;
  }
}

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
  HostFold fold;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const HostSpan& span = spans[i];
    if (i >= std::max(warm_up, 1U) && (span.net.kept > 0 || span.net.kept_bytes > 0)) return true;
    if (span.end != span.first) fold.Add(records.View().Part(span.first, span.end - span.first).records());
  }
  if (fold.Violations() != 0) return true;
  return std::any_of(fold.places().begin(), fold.places().end(), [](const auto& place) { return place.second.count > 0; });
}

HostGrown GrownByPlace(const Lifecycle& lifecycle, const CycleOptions& options, bool blocks, HostRecords* records) {
  HostGrown grown;
  const Result<TrialWorld::Pointer> world = TrialWorld::Open(options.driver, false);
  if (!world.ok()) {
    grown.why_not = world.status().message();
    return grown;
  }
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
    grown.why_not = trace.first_failed != 0 ? "run again for their call stacks, a cycle fails" : kMoreThanFollowed;
    return grown;
  }
  HostFold fold;
  std::map<HostPlaceKey, Series> all;
  for (std::size_t i = 0; i < cycles; ++i) {
    fold.Add(grown.host.Part(spans[i].first, spans[i].end - spans[i].first).records());
    Append(fold, i, &all);
  }
  for (const auto& [key, series] : all) {
    if (key.kind == driver::Kind::HostHeap && !blocks) continue;
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
    finding.detail = AliveText(std::span<const std::int64_t>(series.count));
    grown.findings.push_back(std::move(finding));
  }
  return grown;
}

}  // namespace cuaudit::harness
