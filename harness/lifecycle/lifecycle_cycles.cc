// SPDX-License-Identifier: MIT
#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "harness/cycle/growth.h"
#include "harness/cycle/snapshot.h"
#include "harness/lifecycle/chosen_driver.h"
#include "harness/lifecycle/host_change.h"
#include "harness/lifecycle/sweep_lifecycle.h"
#include "harness/lifecycle/trial_world.h"
#include "harness/verdict/parts.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

struct Grown {
  LiveRow row;
  report::Course course;
};

// The results of the cycles.
struct Found {
  std::vector<Grown> open;     // more cycles may show that it stops
  std::vector<Grown> bounded;  // it has stopped
  std::vector<LiveRow> kept;   // what does not grow
  std::vector<MeterFinding> meters;
};

// The first count of a row is from before the first cycle.
std::span<const std::uint64_t> AfterEachCycle(const LiveRow& row) { return std::span(row.live).subspan(1); }

constexpr std::uint32_t kGoOn = 8;  // times CycleOptions::cycles
// Cycles in which the C library's caches of freed blocks, which HostAudit has emptied, fill again: seven blocks of a size, one in a cycle.
constexpr std::uint32_t kUntilCachesFill = 8;

// What was there before the first cycle is not the lifecycle's. Context-stack entries that are left have a rule of their own.
void AddRows(const Observation& run, std::uint64_t begin, std::uint32_t warm_up, Found* found) {
  std::vector<Snapshot> snapshots = MarkedSnapshots(run, Moments::EachCycle, SitesOfThread());
  snapshots.insert(snapshots.begin(), TakeSnapshot(run, 0, begin, SitesOfThread()));
  for (LiveRow& row : LiveRows(snapshots)) {
    if (row.site.kind == driver::Kind::ContextStackEntry || row.site.key == kInsideTheDriver || row.live.back() <= row.live.front())
      continue;
    const report::Course course = JudgeEachCycle(AfterWarmUp(AfterEachCycle(row), warm_up));
    if (course.trend == report::Trend::Steady) {
      found->kept.push_back(std::move(row));
    } else {
      (IsOpen(course) ? found->open : found->bounded).push_back({std::move(row), course});
    }
  }
}

TrialFindingText TextOf(const LiveRow& row, Rule rule) {
  TrialFindingText text;
  text.rule = rule;
  text.kind = row.site.kind;
  text.count = row.live.back() - row.live.front();
  text.bytes = row.bytes.back() - std::min(row.bytes.front(), row.bytes.back());
  text.acquired = row.site.acquired;
  text.acquired_key = row.site.key;
  return text;
}

TrialFindingText GrownText(const Grown& grown, std::uint32_t warm_up) {
  TrialFindingText text = TextOf(grown.row, RuleOf(grown.course.trend));
  const std::vector<std::uint64_t> after = AfterWarmUp(AfterEachCycle(grown.row), warm_up);
  text.count = after.back() - std::min(after.front(), after.back());
  text.detail = Words({AliveAfterEach(AfterEachCycle(grown.row)), {Detail::FromWarmUp, {report::Describe(grown.course)}}});
  return text;
}

// A loss with a place is not reported again by a meter: a thread that is never joined keeps its stack. Where every block is followed, any
// other heap growth is in the C library.
bool IsTold(const MeterFinding& meter, const HostGrown& places, bool placed, bool sees_blocks) {
  if (meter.meter == HostMeter::HeapBytes) return placed || sees_blocks;
  if (meter.bytes != 0) return placed;
  return std::any_of(places.findings.begin(), places.findings.end(),
                     [&](const TrialFinding& place) { return place.rule == Rule::Growth && place.kind == KindOf(meter.meter); });
}

// Answers what a clean result adds about noisy meters.
Details AddHost(const HostAudit& host, const std::vector<HostChange>& changes, const HostGrown& places, const CycleOptions& options,
                Found* found, Audit* audit) {
  if (!host.wanted() || !host.alone()) {
    audit->unmetered.push_back(Words(host.wanted() ? Reason::HostNotAlone : Reason::HostAsAsked));
    return {};
  }
  HostGrowth growth = GrowthOf(changes, options.warm_up, found->open.empty(), IsGenuine(options.driver));
  for (const Because& why : host.unmetered()) audit->unmetered.push_back(Words(why));
  if (!places.why_not.empty()) audit->unmetered.push_back(Words(Reason::NoPlaces, places.why_not));
  const bool placed =
      std::any_of(places.findings.begin(), places.findings.end(), [](const TrialFinding& one) { return one.rule == Rule::Growth; });
  std::erase_if(growth.findings, [&](const MeterFinding& one) { return IsTold(one, places, placed, host.sees_blocks()); });
  audit->unmetered.insert(audit->unmetered.end(), growth.unmetered.begin(), growth.unmetered.end());
  found->meters = std::move(growth.findings);
  return growth.certificate;
}

Observation Observed(const faults::JournalView& journal) {
  Observation run;
  run.journal = journal;
  run.ledger = Fold(journal.records());
  return run;
}

// What grew in a further series of cycles with its own warm-up, in another world. None when it could not run: then the earlier findings
// stand. `cycles` are those after the warm-up of `warm_up`. Noisy meters are judged only with `noisy`.
std::optional<Found> FurtherSeries(const Lifecycle& lifecycle, const CycleOptions& options, const HostAudit& host, std::uint32_t warm_up,
                                   std::uint64_t cycles, bool noisy) {
  Result<TrialWorld::Pointer> world = TrialWorld::Open(options.driver, false);
  if (!world.ok()) return {};
  const std::size_t all = warm_up + cycles;
  std::vector<HostChange> changes;
  changes.reserve(all);
  TrialTrace trace;
  const HostMeterSet meters = host.wanted() ? kCycleMeters : HostMeterSet();
  (*world)->Run(lifecycle, faults::Plan(), Stacks::All, all, {.first = meters, .others = meters, .all = &changes}, &trace);
  const faults::JournalView journal = (*world)->Journal();
  const bool whole = trace.opened && trace.prepared && trace.first_failed == 0 && changes.size() == all;
  if (!whole || (journal.header().flags.load() & faults::kRecordsDropped) != 0) return {};
  Found found;
  AddRows(Observed(journal), trace.cycle[0].begin, warm_up, &found);
  found.meters = GrowthOf(changes, warm_up, noisy, IsGenuine(options.driver)).findings;
  return found;
}

void Refute(std::string_view kind, Audit* audit) { ++audit->skipped[Words(Reason::GrewOnce, std::string(kind))]; }

const Grown* Find(const std::vector<Grown>& among, const LiveRow& row) {
  const auto at = std::find_if(among.begin(), among.end(),
                               [&](const Grown& one) { return one.row.site.kind == row.site.kind && one.row.site.key == row.site.key; });
  return at == among.end() ? nullptr : &*at;
}

// Runs more and more cycles until what grew has stopped, or `most_cycles` are reached. Growth that a longer series does not show at all was
// a cache of the process, not of its world.
void GoOn(const Lifecycle& lifecycle, const CycleOptions& options, const HostAudit& host, Found* found, Audit* audit) {
  const std::uint64_t most = options.most_cycles == 0 ? std::uint64_t{kGoOn} * options.cycles : options.most_cycles;
  for (std::uint64_t cycles = options.cycles; !found->open.empty() && cycles < most;) {
    cycles = std::min(2 * cycles, most);
    const std::optional<Found> seen = FurtherSeries(lifecycle, options, host, std::max(options.warm_up, 1U), cycles, false);
    if (!seen) return;
    std::erase_if(found->open, [&](Grown& one) {
      if (const Grown* const again = Find(seen->open, one.row)) {
        one.course = again->course;
        return false;
      }
      if (const Grown* const stopped = Find(seen->bounded, one.row)) {
        found->bounded.push_back({std::move(one.row), stopped->course});
      } else {
        Refute(driver::Name(one.row.site.kind), audit);
      }
      return true;
    });
  }
}

report::Undecided Undecided(const Found& found) {
  report::Undecided undecided;
  for (const Grown& one : found.open) {
    if (one.course.trend != report::Trend::Undecided) continue;
    ++undecided.places;
    undecided.cycles = std::max(undecided.cycles, one.course.needed);
  }
  return undecided;
}

// Descriptors, threads and libraries may be another thread's of the process: they must grow in a second series too. Bytes must grow in one
// that begins when the C library's caches are full: while these fill, the heap's statistics rise by what each cycle has freed.
void ConfirmHost(const Lifecycle& lifecycle, const CycleOptions& options, const HostAudit& host, Found* found, Audit* audit) {
  const std::uint32_t warm_up = std::max(options.warm_up, 1U);
  const auto further = [&](bool of_bytes, std::uint32_t after) {
    const auto asks = [of_bytes](const MeterFinding& one) { return one.rule == Rule::Growth && (one.bytes != 0) == of_bytes; };
    const bool asked = std::any_of(found->meters.begin(), found->meters.end(), asks);
    return asked ? FurtherSeries(lifecycle, options, host, after, options.cycles, of_bytes) : std::nullopt;
  };
  const std::optional<Found> second = further(false, warm_up);
  const std::optional<Found> settled = further(true, warm_up + kUntilCachesFill);
  std::erase_if(found->meters, [&](const MeterFinding& one) {
    const std::optional<Found>& beside = one.bytes == 0 ? second : settled;
    if (one.rule != Rule::Growth || !beside) return false;
    const auto same = [&](const MeterFinding& other) { return other.meter == one.meter; };
    if (std::any_of(beside->meters.begin(), beside->meters.end(), same)) return false;
    Refute(WordOf(one.meter), audit);
    return true;
  });
}

}  // namespace

void CheckCycles(const Lifecycle& lifecycle, const CycleOptions& options, Audit* audit) {
  audit->outcome = AuditOutcome::Error;
  const std::size_t cycles = std::size_t{std::max(options.warm_up, 1U)} + options.cycles;
  if (options.cycles == 0) {
    audit->message = "expected at least one cycle after the warm-up";
    return;
  }
  Result<TrialWorld::Pointer> world = TrialWorld::Open(options.driver, false);
  if (!world.ok()) {
    audit->message = world.status().message();
    return;
  }
  audit->driver = (*world)->driver();
  const HostAudit host(options.host, IsGenuine(options.driver));
  std::vector<HostChange> changes;
  changes.reserve(cycles);
  std::vector<HostSpan> spans;
  spans.reserve(cycles);
  TrialTrace trace;
  Metering metering;
  if (host.wanted()) metering = {kCycleMeters, kCycleMeters, &changes, host.records(), false, &spans, false};
  (*world)->Run(lifecycle, faults::Plan(), Stacks::All, cycles, metering, &trace);
  if (!trace.opened || !trace.prepared) {
    audit->message = Words({trace.opened ? Detail::NotPrepared : Detail::NoAddressSpace});
    return;
  }
  if (trace.first_failed != 0) {
    audit->message = Words(FailedWithoutFault(trace, {{Detail::InCycle, {std::to_string(trace.first_failed)}}}));
    return;
  }
  const faults::JournalView journal = (*world)->Journal();
  if ((journal.header().flags.load() & faults::kRecordsDropped) != 0) {
    audit->message = Words({Detail::CyclesTooLong});
    return;
  }
  Observation run = Observed(journal);
  std::erase_if(run.ledger.violations, [&](const Violation& one) { return one.where.begin <= trace.cycle[0].begin; });
  Found found;
  AddRows(run, trace.cycle[0].begin, options.warm_up, &found);
  audit->calls = run.ledger.facts.calls.size();
  if (trace.unheard != 0) Count(Reason::Unheard, trace.unheard, &audit->skipped);
  GoOn(lifecycle, options, host, &found, audit);
  HostGrown places;
  if (host.records() != nullptr && !AllWasSeen(*host.records(), spans)) {
    places.why_not = Words({Detail::MoreThanFollowed});
  } else if (host.records() != nullptr && MayGrow(*host.records(), spans, options.warm_up)) {
    places = GrownByPlace(lifecycle, options, host.sees_blocks() && found.open.empty(), host.records());
  }
  const Details certificate = AddHost(host, changes, places, options, &found, audit);
  ConfirmHost(lifecycle, options, host, &found, audit);
  SiteTexts* const sites = SitesOfThread();
  std::vector<TrialFindingText> texts = Texts(CompareViolations(nullptr, run.evidence()), journal, sites);
  std::vector<TrialFindingText> notes;
  const auto add = [&](TrialFindingText text) { (Row(text.rule).level == Level::Finding ? texts : notes).push_back(std::move(text)); };
  for (const Grown& one : found.open) add(GrownText(one, options.warm_up));
  for (const Grown& one : found.bounded) add(GrownText(one, options.warm_up));
  for (const MeterFinding& meter : found.meters) add(TextOf(meter));
  if (host.alone()) {
    std::size_t of_googletest = 0;
    std::vector<TrialFindingText> of_host = HostTexts(places.findings, places.host, sites, &of_googletest);
    if (of_googletest != 0) Count(Reason::GoogleTestBlocks, of_googletest, &audit->skipped);
    for (TrialFindingText& text : of_host) add(std::move(text));
  }
  for (const LiveRow& row : found.kept) notes.push_back(TextOf(row, Rule::ProcessLifetime));
  AddFaultFree(texts, notes, lifecycle.name(), audit);
  if (run.ledger.facts.calls.empty()) {
    audit->outcome = AuditOutcome::NotExercised;
    audit->message = Words(Diversion::NoStepCalled());
  } else if (audit->findings.empty() && Undecided(found).places != 0) {
    audit->outcome = AuditOutcome::NotExercised;
    audit->message = report::Describe(Undecided(found));
  } else if (audit->findings.empty()) {
    audit->outcome = AuditOutcome::Clean;
    audit->message = Words({Detail::NothingGrew, {std::to_string(cycles)}});
    for (const words::DetailPart& part : certificate) words::Add(part, &audit->message);
  } else {
    audit->outcome = AuditOutcome::Findings;
  }
}

}  // namespace cuaudit::harness
