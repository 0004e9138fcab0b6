// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/cycle_slices.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "harness/sweep/plan/plan_file.h"
#include "harness/verdict/driver_owned.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {
namespace {

using faults::JournalHeader;
using faults::Record;
using faults::RecordKind;

driver::BaseId BaseIdOf(const Record& record) { return driver::BaseOf(static_cast<driver::CallId>(record.call)); }

struct Slice {
  std::vector<Record> records;
  std::unique_ptr<unsigned char[]> header;
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

// True when a call from `ticket` on has the object among its arguments.
bool IsNamedFrom(const Evidence& run, std::uint64_t ticket, const Object& object) {
  const std::vector<std::uint32_t>& calls = run.facts().calls;
  return std::any_of(calls.rbegin(), calls.rend(), [&](std::uint32_t index) {
    const Record& call = run.record(index);
    return call.begin >= ticket && std::find(std::begin(call.argument), std::end(call.argument), object.handle) != std::end(call.argument);
  });
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
    if (call.occurrence == occurrence && BaseIdOf(call) == base) return &call;
  }
  return nullptr;
}

std::uint32_t Cycles::CallsBefore(std::uint32_t cycle, driver::BaseId base) const {
  std::uint32_t calls = 0;
  for (const std::uint32_t index : facts_.calls) {
    const Record& call = journal_.records()[index];
    if (call.begin < BeginOf(cycle) && BaseIdOf(call) == base) calls = std::max(calls, call.occurrence);
  }
  return calls;
}

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
  slice->header = std::make_unique<unsigned char[]>(sizeof(JournalHeader) + alignof(JournalHeader));
  void* place = slice->header.get();
  std::size_t room = sizeof(JournalHeader) + alignof(JournalHeader);
  std::align(alignof(JournalHeader), sizeof(JournalHeader), place, room);
  std::copy_n(reinterpret_cast<const unsigned char*>(&run.journal.header()), sizeof(JournalHeader), static_cast<unsigned char*>(place));
  auto* const header = static_cast<JournalHeader*>(place);
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
    const driver::BaseId base = BaseIdOf(record);
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

}  // namespace cuaudit::harness
