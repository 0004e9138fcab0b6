// SPDX-License-Identifier: MIT
#include "harness/lifecycle/host_records.h"

#include <memory>

#include "faults/driver/call_id.h"
#include "harness/sweep/run/site_text.h"

namespace cuaudit::harness {

using driver::Kind;

HostRecords* HostRecords::Begin(Detail* why) {
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

// Mappings are left out, because the simulated driver's are among them. A mutex that was initialised again without being destroyed stays
// counted.
HostPlaces ChangesIn(const Ledger& ledger, std::uint64_t after, std::uint64_t until) {
  HostPlaces places;
  const auto is_in = [&](const Site& site) { return site.begin > after && site.begin <= until; };
  for (const Object& object : ledger.objects) {
    const bool came = is_in(object.acquired);
    const bool made_anew = object.kind == Kind::Mutex && object.released.record_kind == faults::RecordKind::Empty;
    const bool went = object.state == State::Released && is_in(object.released) && !made_anew;
    if ((!came && !went) || object.kind == Kind::HostMapping || object.library_kept || object.part_of_other) continue;
    HostTally& tally = places[{Rule::Leak, object.kind, object.acquired.call, object.acquired.stack}];
    const std::int64_t change = (came ? 1 : 0) - (went ? 1 : 0);
    tally.count += change;
    tally.bytes += change * static_cast<std::int64_t>(object.bytes);
    tally.acquired = object.acquired;
  }
  for (const Violation& violation : ledger.violations) {
    if (!is_in(violation.where)) continue;
    HostTally& tally = places[{violation.rule, violation.kind, violation.where.call, violation.where.stack}];
    ++tally.count;
    tally.where = violation.where;
    tally.other = violation.other;
    if (violation.object >= 0) tally.acquired = ledger.objects[static_cast<std::size_t>(violation.object)].acquired;
  }
  return places;
}

std::int64_t HostKept::Net(Kind kind) const {
  std::int64_t all = 0;
  for (const auto& [key, tally] : places) all += key.rule == Rule::Leak && key.kind == kind ? tally.count : 0;
  return all;
}

std::int64_t HostKept::Violations() const {
  std::int64_t all = 0;
  for (const auto& [key, tally] : places) all += key.rule == Rule::Leak ? 0 : tally.count;
  return all;
}

}  // namespace cuaudit::harness
