// SPDX-License-Identifier: MIT
#include "harness/cycle/snapshot.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "harness/cycle/growth.h"
#include "harness/ledger/kept_contexts.h"
#include "harness/ledger/rules.h"
#include "harness/sweep/findings/aggregate.h"
#include "harness/verdict/evidence/site_keys.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

bool IsHostCall(const Site& site, faults::HostCall call) {
  return site.record_kind == faults::RecordKind::Host && site.call == static_cast<std::uint16_t>(call);
}

// True for objects whose presence at the end of a cycle is chance: a thread that will detach itself, and a descriptor without recorded open
// or close, which another thread may hold for a moment.
bool GoesByItself(const Object& object) {
  return IsHostCall(object.released, faults::HostCall::ThreadDetachSelf) ||
         (IsHostCall(object.acquired, faults::HostCall::DescriptorFound) && IsHostCall(object.released, faults::HostCall::DescriptorGone));
}

bool AliveAt(const Object& object, std::uint64_t until) {
  if (object.part_of_other || object.acquired.begin > until || driver::DiesWithOf(object.kind) == driver::DiesWith::Parent) return false;
  switch (object.state) {
    case State::Live:
    case State::ReleaseRefused:
      return true;
    case State::Orphaned:
      // A cycle that destroys its own context leaves nothing in it.
      return (!object.own_context && !object.ended_with_peer) || object.released.begin > until;
    case State::Released:
      return (object.released.begin > until && !GoesByItself(object)) || NeverDestroyed(object);
  }
  return false;
}

// How many event and pipe descriptors the created contexts of each process hold. They are reported by the growth of the contexts. Those of
// primary contexts do not grow: there is one for each device.
std::map<std::uint32_t, std::uint64_t> HeldByContexts(const Observation& run, std::uint64_t until) {
  std::map<std::uint32_t, std::uint64_t> held;
  const auto kept = [&](const Object& object) { return object.kind == driver::Kind::Context && AliveAt(object, until); };
  for (const KeptContexts& one : KeptContextsOf(run.ledger, kept)) held[one.pid] = DescriptorsOf(run.journal.header(), one.count);
  return held;
}

using ViolationKey = std::tuple<Rule, driver::Kind, std::uint64_t, std::uint64_t, std::uint64_t>;

ViolationKey KeyOf(const ViolationSite& site) { return {site.rule, site.kind, site.acquired_key, site.where_key, site.other_key}; }

struct ViolationRow {
  ViolationSite site;
  std::vector<std::uint64_t> count;
};

double PerCycle(const std::vector<std::uint64_t>& values, const std::vector<std::uint64_t>& cycles) {
  const double grown = static_cast<double>(values.back()) - static_cast<double>(values.front());
  return grown / static_cast<double>(cycles.back() - cycles.front());
}

std::uint64_t Rounded(double bytes) { return bytes > 0 ? static_cast<std::uint64_t>(bytes + 0.5) : 0; }

// Rounds growth up to one: half a block per cycle is still one block in the end.
std::uint64_t AtLeastOne(double per_cycle) { return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(per_cycle + 0.5)); }

// Allocators map another pool and the C library enlarges a table now and then. A real loss happens in each cycle. What the driver took for
// itself is listed only.
report::Course CourseOf(const LiveRow& row, const std::vector<std::uint64_t>& cycles) {
  const bool now_and_then = row.site.kind == driver::Kind::HostMapping || row.site.library_kept;
  if (row.site.key == kInsideTheDriver || (now_and_then && PerCycle(row.live, cycles) < 1)) return {};
  return JudgeCourse(cycles, row.live);
}

std::vector<std::uint64_t> CyclesOf(std::span<const Snapshot> snapshots) {
  std::vector<std::uint64_t> cycles;
  for (const Snapshot& snapshot : snapshots) cycles.push_back(snapshot.cycles);
  return cycles;
}

std::vector<ViolationRow> CollectViolations(std::span<const Snapshot> snapshots) {
  std::vector<ViolationRow> rows;
  std::map<ViolationKey, std::size_t> index;
  for (std::size_t s = 0; s < snapshots.size(); ++s) {
    for (const ViolationSite& site : snapshots[s].violations) {
      const auto [at, fresh] = index.emplace(KeyOf(site), rows.size());
      if (fresh) rows.push_back({site, std::vector<std::uint64_t>(snapshots.size())});
      rows[at->second].count[s] += site.count;
    }
  }
  return rows;
}

report::Finding MakeFinding(Rule rule, driver::Kind kind, const report::Acquired& acquired, const report::Acquired& where,
                            const report::Acquired& other, FingerprintSet* fingerprints) {
  report::Finding finding;
  finding.rule = rule;
  finding.title = std::string(Row(rule).title);
  finding.kind = std::string(driver::Name(kind));
  finding.acquired = acquired;
  finding.where = where.call;
  finding.where_stack = where.stack;
  finding.other = other;
  TrialFindingText text;
  text.rule = rule;
  text.kind = kind;
  text.apart = finding.kind;  // "none" when there is no object
  text.acquired = acquired;
  text.where = where;
  text.other = other;
  finding.fingerprint = fingerprints->Claim(Fingerprint(text, std::nullopt));
  return finding;
}

}  // namespace

Snapshot TakeSnapshot(const Observation& run, std::uint64_t cycles, std::uint64_t until, SiteTexts* sites) {
  Snapshot snapshot;
  snapshot.cycles = cycles;
  std::map<std::pair<driver::Kind, std::uint64_t>, std::size_t> index;
  std::map<std::uint32_t, std::uint64_t> held = HeldByContexts(run, until);
  for (const Object& object : run.ledger.objects) {
    if (!AliveAt(object, until)) continue;
    bool inside = object.driver_owned;
    if (const auto left = held.find(object.pid); object.event_or_pipe && left != held.end() && left->second != 0) {
      inside = true;
      --left->second;
    }
    // What the driver took for itself is one row for all places. It must not grow, but the program cannot say more about it.
    const std::uint64_t key = inside ? kInsideTheDriver : SiteKey(run.journal, object.acquired);
    const auto [at, fresh] = index.emplace(std::make_pair(object.kind, key), snapshot.live.size());
    if (fresh) {
      report::Acquired acquired =
          inside ? report::Acquired{Words({Detail::InsideTheDriver}), {}} : *sites->Text(run.journal, object.acquired, key);
      snapshot.live.push_back({object.kind, key, std::move(acquired), 0, 0, object.library_kept});
    }
    snapshot.live[at->second].live += std::max<std::uint64_t>(1, object.references);
    snapshot.live[at->second].bytes += object.bytes;
  }
  std::map<ViolationKey, std::size_t> violations;
  for (const Violation& violation : run.ledger.violations) {
    if (violation.where.begin > until) continue;
    const Site acquired = violation.object < 0 ? Site() : run.ledger.objects[static_cast<std::size_t>(violation.object)].acquired;
    const std::uint64_t other_key = SiteKey(run.journal, violation.other);
    ViolationSite site = {.rule = violation.rule, .kind = violation.kind, .where_key = SiteKey(run.journal, violation.where)};
    // Two colliding calls are one row, whichever object they collide in.
    if (!IsProved(violation.rule)) site.acquired_key = SiteKey(run.journal, acquired);
    if (OtherCallOf(violation.rule).tells_apart) site.other_key = other_key;
    const auto [at, fresh] = violations.emplace(KeyOf(site), snapshot.violations.size());
    if (fresh) {
      site.acquired = sites->Text(run.journal, acquired, SiteKey(run.journal, acquired));
      site.where = sites->Text(run.journal, violation.where, site.where_key);
      site.other = sites->Text(run.journal, violation.other, other_key);
      snapshot.violations.push_back(std::move(site));
    }
    ++snapshot.violations[at->second].count;
  }
  return snapshot;
}

std::vector<Snapshot> MarkedSnapshots(const Observation& run, Moments moments, SiteTexts* sites) {
  std::map<std::uint32_t, std::uint64_t> ends;  // by cycle
  for (const std::uint32_t mark : run.ledger.facts.marks) {
    const faults::Record& record = run.journal.records()[mark];
    if (IsMark(record, faults::MarkKind::CycleEnd)) ends.emplace(record.cycle, record.begin);
  }
  std::vector<Snapshot> snapshots;
  const std::size_t apart = moments == Moments::EachCycle ? 1 : (ends.size() + kSpread - 1) / kSpread;
  std::size_t index = 0;
  for (const auto& [cycle, end] : ends) {
    if (index++ % apart == 0 || index == ends.size()) snapshots.push_back(TakeSnapshot(run, cycle, end, sites));
  }
  return snapshots;
}

std::vector<LiveRow> LiveRows(std::span<const Snapshot> snapshots) {
  std::vector<LiveRow> rows;
  std::map<std::pair<driver::Kind, std::uint64_t>, std::size_t> index;
  for (std::size_t s = 0; s < snapshots.size(); ++s) {
    for (const LiveSite& site : snapshots[s].live) {
      const auto [at, fresh] = index.emplace(std::make_pair(site.kind, site.key), rows.size());
      if (fresh) {
        rows.push_back({site, std::vector<std::uint64_t>(snapshots.size()), std::vector<std::uint64_t>(snapshots.size())});
      }
      rows[at->second].live[s] += site.live;
      rows[at->second].bytes[s] += site.bytes;
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const LiveRow& a, const LiveRow& b) { return a.site.kind < b.site.kind; });
  return rows;
}

std::uint64_t NextCount(std::span<const Snapshot> snapshots, std::uint64_t most) {
  const std::vector<std::uint64_t> cycles = CyclesOf(snapshots);
  if (cycles.back() >= most) return 0;
  const std::vector<LiveRow> rows = LiveRows(snapshots);
  const bool open = std::any_of(rows.begin(), rows.end(), [&](const LiveRow& row) { return IsOpen(CourseOf(row, cycles)); });
  return open ? std::min(2 * cycles.back(), most) : 0;
}

void CompareSnapshots(std::span<const Snapshot> snapshots, const std::string& reproduce, report::Run* run) {
  const std::vector<std::uint64_t> cycles = CyclesOf(snapshots);
  run->cycle_counts = cycles;
  report::Undecided undecided;
  FingerprintSet fingerprints;
  for (const LiveRow& row : LiveRows(snapshots)) {
    report::CycleRow out;
    out.kind = std::string(driver::Name(row.site.kind));
    out.acquired = row.site.acquired;
    out.live = row.live;
    out.per_cycle = PerCycle(row.live, cycles);
    const double bytes = PerCycle(row.bytes, cycles);
    out.bytes_per_cycle = Rounded(bytes);
    out.course = CourseOf(row, cycles);
    const bool falls = out.per_cycle < 0 && row.site.key != kInsideTheDriver;
    if (falls || IsOpen(out.course)) run->per_cycle[out.kind] += out.per_cycle;
    if (out.course.trend == report::Trend::Undecided) {
      ++undecided.places;
      undecided.cycles = std::max(undecided.cycles, out.course.needed);
    }
    if (out.course.trend != report::Trend::Steady) {
      const Rule rule = RuleOf(out.course.trend);
      report::Finding finding = MakeFinding(rule, row.site.kind, row.site.acquired, {}, {}, &fingerprints);
      const bool grows = rule == Rule::Growth;
      finding.count = grows ? AtLeastOne(out.per_cycle) : out.course.plateau;
      // One object in nine cycles is one whole object.
      finding.bytes = grows ? Rounded(bytes * static_cast<double>(finding.count) / out.per_cycle) : row.bytes.back();
      finding.detail = report::Describe(out.course);
      finding.reproduce = reproduce;
      (grows ? run->findings : run->notes).push_back(std::move(finding));
    }
    run->cycle_rows.push_back(std::move(out));
  }
  if (undecided.places != 0) run->message.undecided = undecided;
  for (const ViolationRow& row : CollectViolations(snapshots)) {
    report::Finding finding = MakeFinding(row.site.rule, row.site.kind, row.site.acquired, row.site.where, row.site.other, &fingerprints);
    const double grown = PerCycle(row.count, cycles);
    finding.count = grown > 0 ? AtLeastOne(grown) : *std::max_element(row.count.begin(), row.count.end());
    finding.reproduce = reproduce;
    (Row(row.site.rule).level == Level::Finding ? run->findings : run->notes).push_back(std::move(finding));
  }
}

}  // namespace cuaudit::harness
