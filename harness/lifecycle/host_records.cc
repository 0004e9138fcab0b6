// SPDX-License-Identifier: MIT
#include "harness/lifecycle/host_records.h"

#include <memory>
#include <span>

#include "faults/driver/call_id.h"
#include "harness/sweep/run/site_text.h"

namespace cuaudit::harness {

using driver::Kind;
using faults::HostCall;
using faults::Record;

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

void HostFold::Hold(Kind kind, const Record& record, std::int64_t bytes) {
  const HostPlaceKey key = {Rule::Leak, kind, record.call, record.stack};
  HostTally& tally = places_[key];
  ++tally.count;
  tally.bytes += bytes;
  tally.acquired = SiteOf(record);
  if (kind != Kind::HostHeap) held_[{kind, record.argument[0]}].push_back(key);
}

// A block that is given back has the place of its allocation.
void HostFold::AddBlock(const HostDeed& deed, const Record& record) {
  const auto bytes = static_cast<std::int64_t>(record.argument[1]);
  if (deed.acquires == Kind::HostHeap) return Hold(Kind::HostHeap, record, bytes);
  HostTally& tally = places_[{Rule::Leak, Kind::HostHeap, static_cast<std::uint16_t>(HostCall::Allocate), record.stack}];
  --tally.count;
  tally.bytes -= bytes;
}

void HostFold::Release(Kind kind, const Record& record) {
  const auto held = held_.find({kind, record.argument[0]});
  if (held == held_.end()) {
    ++unseen_[kind];
    return;
  }
  --places_[held->second.back()].count;
  held->second.pop_back();
  if (held->second.empty()) held_.erase(held);
}

void HostFold::Violate(Rule rule, const Record& record) {
  HostTally& tally = places_[{rule, Kind::Mutex, record.call, record.stack}];
  ++tally.count;
  tally.where = SiteOf(record);
  const auto held = held_.find({Kind::Mutex, record.argument[0]});
  if (held != held_.end()) tally.acquired = places_[held->second.back()].acquired;
}

void HostFold::Add(std::span<const Record> records) {
  for (const Record& record : records) {
    // An incomplete record: the call failed without an effect.
    if (record.kind != faults::RecordKind::Host || record.end == 0 || record.argument[0] == 0) continue;
    const auto call = static_cast<HostCall>(record.call);
    const HostDeed deed = DeedOf(call);
    if (deed.acquires == Kind::HostHeap || deed.releases == Kind::HostHeap) {
      if ((record.flags & (faults::kKeptByLibrary | faults::kPartOfOther)) == 0) AddBlock(deed, record);
      continue;
    }
    // A meter counts descriptors here instead of a census, and mappings would include those of the simulated driver.
    const bool elsewhere =
        call == HostCall::DescriptorFound || call == HostCall::DescriptorGone || call == HostCall::Map || call == HostCall::Unmap;
    if (elsewhere) continue;
    if (call == HostCall::MutexFreed) Violate(Rule::MutexFreed, record);
    const bool locked = call == HostCall::MutexDestroyedLocked || (call == HostCall::MutexFreed && record.argument[1] == 1);
    if (locked) Violate(Rule::MutexLocked, record);
    if (deed.acquires != Kind::None) Hold(deed.acquires, record, 0);
    if (deed.releases != Kind::None) Release(deed.releases, record);
  }
}

std::int64_t HostFold::Net(Kind kind) const {
  const auto unseen = unseen_.find(kind);
  std::int64_t net = unseen == unseen_.end() ? 0 : -unseen->second;
  for (const auto& [key, tally] : places_) {
    if (key.rule == Rule::Leak && key.kind == kind) net += tally.count;
  }
  return net;
}

std::int64_t HostFold::Violations() const {
  std::int64_t all = 0;
  for (const auto& [key, tally] : places_) all += key.rule == Rule::Leak ? 0 : tally.count;
  return all;
}

}  // namespace cuaudit::harness
