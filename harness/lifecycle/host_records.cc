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

HostRecords* HostRecords::Begin(std::string* why) {
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
    *why = "cuaudit's host drop-in is not in this process (CMake: cuaudit::host, or LD_PRELOAD)";
    return nullptr;
  }
  records->blind_ = {};
  if (records->calls_->begin(&records->journal_.journal()->header(), &records->blind_)) return records;
  *why = "cuaudit's host drop-in writes to the journal of the command that started this process";
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
    switch (static_cast<HostCall>(record.call)) {
      case HostCall::Allocate:
      case HostCall::Deallocate: {
        if ((record.flags & (faults::kKeptByLibrary | faults::kPartOfOther)) != 0) break;
        const auto bytes = static_cast<std::int64_t>(record.argument[1]);
        if (record.call == static_cast<std::uint16_t>(HostCall::Allocate)) {
          Hold(Kind::HostHeap, record, bytes);
        } else {
          HostTally& tally = places_[{Rule::Leak, Kind::HostHeap, static_cast<std::uint16_t>(HostCall::Allocate), record.stack}];
          --tally.count;
          tally.bytes -= bytes;
        }
        break;
      }
      case HostCall::Dlopen:
        Hold(Kind::DlopenReference, record, 0);
        break;
      case HostCall::Dlclose:
        Release(Kind::DlopenReference, record);
        break;
      case HostCall::MutexInit:
        Hold(Kind::Mutex, record, 0);
        break;
      case HostCall::MutexDestroy:
        Release(Kind::Mutex, record);
        break;
      case HostCall::MutexFreed:
        Violate(Rule::MutexFreed, record);
        if (record.argument[1] == 1) Violate(Rule::MutexLocked, record);
        Release(Kind::Mutex, record);
        break;
      case HostCall::MutexDestroyedLocked:
        Violate(Rule::MutexLocked, record);
        // The C library answered EBUSY. The mutex counts as released, because a program that ignores this does not try again.
        Release(Kind::Mutex, record);
        break;
      case HostCall::ThreadCreate:
        Hold(Kind::Thread, record, 0);
        break;
      case HostCall::ThreadJoin:
      case HostCall::ThreadDetach:
      case HostCall::ThreadDetachSelf:
        Release(Kind::Thread, record);
        break;
      case HostCall::DescriptorOpen:
      case HostCall::DescriptorSocket:
      case HostCall::DescriptorPipe:
      case HostCall::DescriptorDup:
      case HostCall::DescriptorEvent:
      case HostCall::DescriptorPoll:
      case HostCall::DescriptorTimer:
      case HostCall::DescriptorMemory:
      case HostCall::DescriptorWatch:
      case HostCall::DescriptorSignal:
      case HostCall::DescriptorStream:
      case HostCall::DescriptorDirectory:
      case HostCall::DescriptorReceived:
        Hold(Kind::FileDescriptor, record, 0);
        break;
      case HostCall::DescriptorClose:
        Release(Kind::FileDescriptor, record);
        break;
      case HostCall::DescriptorFound:  // a meter counts descriptors here instead of a census
      case HostCall::DescriptorGone:
      case HostCall::Map:  // would include mappings of the simulated driver
      case HostCall::Unmap:
      case HostCall::Reading:
      case HostCall::Looking:
        break;
    }
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
