// SPDX-License-Identifier: MIT
#include "harness/lifecycle/host_records.h"

#include <memory>

#include "faults/driver/call_id.h"

namespace cuaudit::harness {

using driver::Kind;

HostRecords* HostRecords::Begin(std::optional<Detail>* why) {
  // Never destroyed, because a thread of the program may be writing a record.
  static HostRecords* const records = [] {
    auto made = std::make_unique<HostRecords>();
    made->calls_ = FindHostWatch(driver::TableDigest());
    if (made->calls_ == nullptr) return static_cast<HostRecords*>(nullptr);
    faults::JournalOptions options;
    options.record_capacity = std::size_t{1} << 20;
    options.stack_depth = faults::kMaxFrames;
    return made->journal_.Open(options, false) == nullptr ? made.release() : nullptr;
  }();
  if (records == nullptr) {
    *why = Detail::NoHostDropIn;
    return nullptr;
  }
  records->blind_ = {};
  if (records->calls_->begin(&records->journal_.journal()->header(), &records->blind_)) return records;
  *why = Detail::HostDropInTaken;
  return nullptr;
}

void Add(const HostTally& change, HostTally* tally) {
  HostTally sum = change;
  sum.count += tally->count;
  sum.bytes += tally->bytes;
  if (change.acquired.record_kind == faults::RecordKind::Empty) sum.acquired = tally->acquired;
  *tally = sum;
}

// Mappings are left out, because the simulated driver's are among them.
std::vector<HostPlaces> ChangesBetween(const Ledger& ledger, std::span<const std::uint64_t> tickets, FreedMutex freed) {
  std::vector<HostPlaces> places(tickets.size() - 1);
  const auto in = [&](const Site& site) {
    const auto until = std::lower_bound(tickets.begin(), tickets.end(), site.begin);
    return until == tickets.begin() || until == tickets.end() ? nullptr : &places[static_cast<std::size_t>(until - tickets.begin()) - 1];
  };
  for (const Object& object : ledger.objects) {
    if (object.kind == Kind::HostMapping || object.library_kept || object.part_of_other) continue;
    const HostPlaceKey key = {Rule::Leak, object.kind, object.acquired.call, object.acquired.stack};
    const auto change = [&](HostPlaces* where, std::int64_t count) {
      if (where != nullptr) Add({count, count * static_cast<std::int64_t>(object.bytes), object.acquired, {}, {}}, &(*where)[key]);
    };
    change(in(object.acquired), 1);
    const bool was_freed = object.released.record_kind != faults::RecordKind::Empty;
    const bool stays = NeverDestroyed(object) && (!was_freed || freed == FreedMutex::Stays);
    if (object.state == State::Released && !stays) change(in(object.released), -1);
  }
  for (const Violation& violation : ledger.violations) {
    HostPlaces* const where = in(violation.where);
    if (where == nullptr) continue;
    const Site acquired = violation.object >= 0 ? ledger.objects[static_cast<std::size_t>(violation.object)].acquired : Site{};
    const bool again = violation.rule == Rule::Deficit && violation.other.record_kind != faults::RecordKind::Empty;
    const HostPlaceKey key = {violation.rule, violation.kind, violation.where.call, violation.where.stack, again};
    Add({1, 0, acquired, violation.where, violation.other}, &(*where)[key]);
  }
  return places;
}

HostPlaces ChangesIn(const Ledger& ledger, std::uint64_t after, std::uint64_t until) {
  const std::uint64_t tickets[] = {after, until};
  return ChangesBetween(ledger, tickets, FreedMutex::Gone).front();
}

std::int64_t HostKept::Net(const HostPlaceKey& sort) const {
  std::int64_t all = 0;
  for (const auto& [key, tally] : places)
    all += std::tie(key.rule, key.kind, key.again) == std::tie(sort.rule, sort.kind, sort.again) ? tally.count : 0;
  return all;
}

std::int64_t HostKept::Violations() const {
  std::int64_t all = 0;
  for (const auto& [key, tally] : places) all += key.rule == Rule::Leak ? 0 : tally.count;
  return all;
}

}  // namespace cuaudit::harness
