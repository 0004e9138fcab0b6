// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/cycle_runner.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "faults/plan/fork_file.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/host/driver_owned.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {
namespace {

using faults::JournalHeader;
using faults::Record;
using faults::RecordKind;

struct Slice {
  std::vector<Record> records;
  std::unique_ptr<JournalHeader> header = std::make_unique<JournalHeader>();
  std::shared_ptr<const Observation> run;
};

PlaceCounts LiveAt(const Observation& run, std::uint64_t ticket) {
  PlaceCounts places;
  for (const Object& object : run.ledger.objects) {
    if (object.acquired.record_kind != RecordKind::Call || !IsHeldAt(object, ticket)) continue;
    ++places[{object.kind, SiteKey(run.journal, object.acquired)}];
  }
  return places;
}

// A context decides where later calls go even when they do not name it, so it must not stay behind.
bool CanLieThere(driver::Kind kind) {
  return kind != driver::Kind::Context && kind != driver::Kind::PrimaryContext && kind != driver::Kind::ContextStackEntry &&
         kind != driver::Kind::GreenContext;
}

// True when a call from `ticket` on has the object among its arguments, or for peer access its peer.
bool IsNamedFrom(const Evidence& run, std::uint64_t ticket, const Object& object) {
  const std::uint64_t name = object.kind == driver::Kind::PeerAccess ? object.parent : object.handle;
  const std::vector<std::uint32_t>& calls = run.facts().calls;
  return std::any_of(calls.rbegin(), calls.rend(), [&](std::uint32_t index) {
    const Record& call = run.record(index);
    return call.begin >= ticket && std::find(std::begin(call.argument), std::end(call.argument), name) != std::end(call.argument);
  });
}

using faults::Fault;

bool StopsWithTheCall(faults::How how) {
  return how == faults::How::Refuse || how == faults::How::RefuseGarbage || how == faults::How::After;
}

}  // namespace

Cycles::Cycles(const Evidence& run) : journal_(*run.journal), facts_(run.facts()) {}

std::uint64_t Cycles::TraceOf(std::uint32_t cycle) const {
  std::uint64_t hash = kHashSeed;
  for (const std::uint32_t index : facts_.calls) {
    const Record& call = journal_.records()[index];
    if (call.begin < BeginOf(cycle) || call.begin > EndOf(cycle)) continue;
    hash = HashNumber(SiteKey(journal_, SiteOf(call)), hash);
    hash = HashNumber(static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.result)), hash);
  }
  return hash;
}

const Record* Cycles::CallOf(driver::BaseId base, std::uint32_t occurrence) const {
  for (const std::uint32_t index : facts_.calls) {
    const Record& call = journal_.records()[index];
    if (call.occurrence == occurrence && BaseOf(call) == base) return &call;
  }
  return nullptr;
}

std::uint32_t Cycles::CallsBefore(std::uint32_t cycle, driver::BaseId base) const {
  std::uint32_t calls = 0;
  for (const std::uint32_t index : facts_.calls) {
    const Record& call = journal_.records()[index];
    if (call.begin < BeginOf(cycle) && BaseOf(call) == base) calls = std::max(calls, call.occurrence);
  }
  return calls;
}

Observation SliceOf(const std::shared_ptr<const Observation>& of, const Cycles& cycles, std::uint32_t first, std::uint32_t cycle,
                    std::uint32_t as, const Cycles& rehearsal, bool last) {
  const Observation& run = *of;
  const std::uint64_t before = cycles.BeginOf(first);
  const std::uint64_t begin = cycles.BeginOf(cycle);
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  const std::uint64_t end = last || cycles.count() < cycle + 2 ? kNever : cycles.BeginOf(cycle + 2);
  const std::uint64_t after = last ? kNever : cycles.EndOf(cycles.count());
  const auto slice = std::make_shared<Slice>();
  slice->run = of;
  JournalHeader* const header = slice->header.get();
  std::memcpy(static_cast<void*>(header), static_cast<const void*>(&run.journal.header()), sizeof(JournalHeader));
  for (auto& fired : header->fired) fired.store(0);
  std::map<driver::BaseId, std::int64_t> moved;  // difference between the occurrence here and in a run of its own
  for (const Record& record : run.journal.records()) {
    if (record.begin == 0) continue;
    const bool own = record.begin >= begin && record.begin < end;
    if (!own && record.begin >= before && record.begin <= after) continue;
    Record& kept = slice->records.emplace_back(record);
    if (!own) continue;
    kept.cycle = record.cycle - cycle + as;
    if (record.fault != 0 && record.fault <= faults::kMaxFaults) header->fired[record.fault - 1].fetch_add(1);
    if (!IsProgramCall(record)) continue;
    const driver::BaseId base = BaseOf(record);
    const auto [found, added] = moved.try_emplace(base, 0);
    if (added) found->second = static_cast<std::int64_t>(rehearsal.CallsBefore(as, base)) - cycles.CallsBefore(cycle, base);
    kept.occurrence = static_cast<std::uint32_t>(record.occurrence + found->second);
  }
  header->next_record.store(slice->records.size());
  Observation seen;
  seen.path = run.path;
  seen.ending = run.ending;
  seen.journal = faults::JournalView::Join(header, slice->records, run.journal);
  seen.keeps = slice;
  seen.ledger = Fold(seen.journal.records());
  MarkDriverOwned(seen.journal, &seen.ledger);
  return seen;
}

namespace {

// The first cycle from which all cycles of the rehearsal do the same; 0 when there are fewer than two such cycles.
std::uint32_t SteadyFrom(const Cycles& rehearsal) {
  if (rehearsal.count() < 2) return 0;
  for (std::uint32_t cycle = 1; cycle <= rehearsal.count(); ++cycle) {
    if (!rehearsal.Ended(cycle)) return 0;
  }
  std::uint32_t steady = rehearsal.count();
  const std::uint64_t trace = rehearsal.TraceOf(steady);
  while (steady > 1 && rehearsal.TraceOf(steady - 1) == trace) --steady;
  return steady < rehearsal.count() ? steady : 0;
}

// True when the trials after the one in `cycle` are unaffected by it: the clean cycle afterwards does what the rehearsal's cycle `as` does
// and leaves nothing, and no later call names what `cycle` left (a leak, a refused release).
bool MayGoOn(const Observation& run, const Cycles& cycles, std::uint32_t cycle, std::uint32_t as, const Cycles& rehearsal) {
  if (!cycles.Ended(cycle) || !cycles.Ended(cycle + 1)) return false;
  if (cycles.TraceOf(cycle + 1) != rehearsal.TraceOf(as)) return false;
  const std::uint64_t begin = cycles.BeginOf(cycle);
  const std::uint64_t end = cycles.EndOf(cycle + 1);
  if (LiveAt(run, begin) == LiveAt(run, end)) return true;
  for (const Object& object : run.ledger.objects) {
    if (object.acquired.record_kind != RecordKind::Call || IsHeldAt(object, begin) == IsHeldAt(object, end)) continue;
    const bool own = object.acquired.begin > begin && object.acquired.begin < cycles.EndOf(cycle);
    if (!own || !CanLieThere(object.kind) || IsNamedFrom(run.evidence(), cycles.EndOf(cycle), object)) return false;
  }
  return true;
}

}  // namespace

Reason WhyUnfitForCycles(const Rehearsal& rehearsal) {
  if (rehearsal.drifting) return Reason::RunsDiffer;
  const Evidence run = rehearsal.run.evidence();
  const std::vector<std::uint32_t>& marks = run.facts().marks;
  const bool reports =
      std::any_of(marks.begin(), marks.end(), [&](std::uint32_t mark) { return IsMark(run.record(mark), faults::MarkKind::Report); });
  if (run.facts().threaded) return Reason::SeveralThreads;
  if (rehearsal.run.ending.orphans != 0) return Reason::Outlives;
  const Cycles cycles(run);
  if (cycles.count() == 0) return Reason::NoCycles;
  if (!reports) return Reason::NoReports;
  return SteadyFrom(cycles) == 0 ? Reason::Unsteady : Reason::None;
}

CycleRunner::CycleRunner(const Subject& subject, const WorkDir& dir, const SpawnOptions& options, const Rehearsal& rehearsal,
                         std::unique_ptr<Runner> other)
    : subject_(subject),
      dir_(dir),
      options_(options),
      cycles_(rehearsal.run.evidence()),
      unfit_(WhyUnfitForCycles(rehearsal)),
      steady_(unfit_ == Reason::None ? SteadyFrom(cycles_) : 0),
      other_(std::move(other)) {}

// The reason why the trial must run elsewhere; None when it is armed.
Because CycleRunner::Arm(const TrialOrder& order, Armed* armed) const {
  if (unfit_ != Reason::None) return {unfit_};
  if (order.attempt > 1) return {Reason::OtherPlace};
  if (order.faults.size() > faults::kCycleFaults) return {Reason::TooManyFaults};
  for (const std::string& text : order.faults) {
    Fault fault;
    if (faults::ParseFault(text, &fault).expected != nullptr || fault.site != 0) return {Reason::BySite};
    if (const faults::HostFaultRow* const host = faults::HostFaultOf(fault.base)) return {Reason::HostFault, std::string(host->what)};
    if (fault.phase != faults::Phase::Any) return {Reason::ByPhase};
    if (!StopsWithTheCall(fault.how)) return {Reason::FaultLasts};
    armed->faults.push_back(fault);
  }
  const Fault& first = armed->faults.front();
  const Record* const call = cycles_.CallOf(first.base, first.occurrence);
  const bool inside = call != nullptr && call->cycle >= steady_ && call->cycle > 0 && call->cycle + 1 <= cycles_.count() &&
                      call->begin > cycles_.BeginOf(call->cycle) && call->begin < cycles_.EndOf(call->cycle);
  if (inside) armed->as = call->cycle;
  if (armed->as == 0) return {Reason::OutsideCycles};
  for (Fault& fault : armed->faults) {
    const std::uint32_t before = cycles_.CallsBefore(armed->as, fault.base);
    if (fault.occurrence <= before) return {Reason::OutsideCycles};
    fault.occurrence -= before;
  }
  armed->order = order;
  return {};
}

Status CycleRunner::Give(std::vector<TrialOrder> orders) {
  for (TrialOrder& order : orders) {
    Armed armed;
    const Because why = Arm(order, &armed);
    if (why.reason == Reason::None) {
      waiting_.push_back(std::move(armed));
      continue;
    }
    why_[order.index] = why;
    Status given = other_->Give({std::move(order)});
    if (!given.ok()) return given;
  }
  return {};
}

// Starts one process with as many trials as the program has pairs of cycles after the cycle that these trials stand for.
Status CycleRunner::RunOne() {
  const std::uint32_t as = waiting_.front().as;
  std::vector<Armed> trials;
  std::string file(sizeof(faults::CycleHeader), '\0');
  const bool alone = waiting_.front().alone;
  for (std::uint32_t cycle = as; cycle + 1 <= cycles_.count() && !waiting_.empty() && waiting_.front().as == as; cycle += 2) {
    if (!trials.empty() && alone) break;
    faults::CycleRow row;
    row.cycle = cycle;
    row.faults = static_cast<std::uint32_t>(waiting_.front().faults.size());
    std::copy(waiting_.front().faults.begin(), waiting_.front().faults.end(), row.fault);
    file.append(reinterpret_cast<const char*>(&row), sizeof(row));
    trials.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  faults::CycleHeader header{};
  std::memcpy(header.magic, faults::kCycleMagic, sizeof(header.magic));
  header.table_digest = driver::TableDigest();
  header.file_bytes = file.size();
  header.rows = trials.size();
  std::memcpy(file.data(), &header, sizeof(header));
  const std::string name = dir_.Journal("cycles-" + std::to_string(++runs_));
  Status written = WriteFile(name + ".cycles", file, Exit::Failure);
  if (!written.ok()) return written;
  const Result<Launch> launch = PrepareRun(subject_, name + ".journal", options_.records, {},
                                           options_.keep ? name + ".log" : std::string("/dev/null"), "cycles=" + name + ".cycles");
  if (!launch.ok()) return launch.status();
  Status started = pool_.Start(0, *launch);
  if (!started.ok()) return started;
  const Result<ProcessPool::Ended> ended = pool_.WaitAny();
  if (!ended.ok()) return ended.status();
  Result<Observation> run = ReadObservation(name + ".journal", ended->ending);
  if (!run.ok() && !IsDamaged(run.status())) return {Exit::Failure, run.status().message()};
  if (!options_.keep) {
    unlink((name + ".journal").c_str());
    unlink((name + ".cycles").c_str());
  }
  if (!run.ok()) return Elsewhere(std::move(trials), Reason::CycleOverwritten);
  return Take(std::make_shared<const Observation>(std::move(*run)), std::move(trials), as);
}

Status CycleRunner::Elsewhere(std::vector<Armed> trials, Reason why) {
  for (Armed& one : trials) {
    why_[one.order.index] = {why};
    Status given = other_->Give({std::move(one.order)});
    if (!given.ok()) return given;
  }
  return {};
}

Status CycleRunner::Take(const std::shared_ptr<const Observation>& of, std::vector<Armed> trials, std::uint32_t first) {
  const Observation& run = *of;
  if (run.ending.left_behind != 0) return Elsewhere(std::move(trials), Reason::CycleLeft);
  const Cycles cycles(run.evidence());
  const bool dropped = (run.flags() & faults::kRecordsDropped) != 0;
  const bool whole =
      !dropped && cycles.count() == cycles_.count() && cycles.Ended(cycles.count()) && run.ending.signal == 0 && !run.ending.timed_out;
  const auto cycle_of = [&](std::size_t i) { return first + 2 * static_cast<std::uint32_t>(i); };
  std::size_t counted = 0;  // leading trials with a valid result of their own
  if (whole) {
    while (counted < trials.size() && MayGoOn(run, cycles, cycle_of(counted), trials[counted].as, cycles_)) ++counted;
    if (counted < trials.size()) ++counted;  // the result of this trial is still its own; later ones are not valid
    for (std::size_t i = 0; i < counted; ++i) {
      ready_.push_back(
          {trials[i].order.index, SliceOf(of, cycles, first, cycle_of(i), trials[i].as, cycles_, false), Isolation::Cycle, {}});
    }
  }
  // The process ended early. The last trial that it reached is the cause.
  std::size_t last = trials.size();
  for (std::size_t i = 0; !whole && i < trials.size(); ++i) {
    if (cycles.count() >= cycle_of(i)) last = i;
  }
  if (!whole && last == 0) {
    ready_.push_back({trials[0].order.index, SliceOf(of, cycles, first, first, trials[0].as, cycles_, true), Isolation::Cycle, {}});
    counted = 1;
  } else if (!whole && last < trials.size()) {
    std::swap(trials[0], trials[last]);  // alone in its process, it can be blamed for what happens there
    trials[0].alone = true;
  } else if (!whole) {
    return Elsewhere(std::move(trials), Reason::EndedEarly);
  }
  for (std::size_t i = trials.size(); i > counted; --i) waiting_.push_front(std::move(trials[i - 1]));
  return {};
}

Result<TrialSeen> CycleRunner::Next() {
  while (ready_.empty() && !waiting_.empty()) {
    Status ran = RunOne();
    if (!ran.ok()) return ran;
  }
  if (!ready_.empty()) {
    TrialSeen seen = std::move(ready_.front());
    ready_.pop_front();
    return seen;
  }
  Result<TrialSeen> seen = other_->Next();
  const auto why = seen.ok() ? why_.find(seen->index) : why_.end();
  if (why != why_.end()) seen->fallback.insert(seen->fallback.begin(), why->second);
  return seen;
}

}  // namespace cuaudit::harness
