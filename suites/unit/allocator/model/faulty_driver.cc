// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "suites/unit/allocator/model/faulty_driver.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/journal/journal_file.h"
#include "faults/shim/gate.h"

namespace cuaudit::alloc {

namespace {

// One is kept for the next program: to make its pages costs more than to write what a program calls.
std::unique_ptr<faults::MemoryJournal> spare;

std::unique_ptr<faults::MemoryJournal> EmptyJournal() {
  if (spare != nullptr) {
    spare->Clear();
    return std::move(spare);
  }
  faults::JournalOptions options = {.record_capacity = std::size_t{1} << 18, .stack_depth = 0};
  auto journal = std::make_unique<faults::MemoryJournal>();
  if (journal->Open(options, false) != nullptr) std::abort();
  return journal;
}

}  // namespace

struct FaultyDriver::Parts {
  std::unique_ptr<faults::MemoryJournal> journal = EmptyJournal();
  faults::Gate gate;
};

FaultyDriver::FaultyDriver(driver::DriverRef next, std::vector<ChosenFault> faults)
    : parts_(std::make_unique<Parts>()), faults_(std::move(faults)) {
  parts_->gate.Arm(next, parts_->journal->journal(), nullptr, faults::Plan(), faults::Scope::Process);
  parts_->gate.Watch({BeforeCall, this});
}

FaultyDriver::~FaultyDriver() { spare = std::move(parts_->journal); }

driver::DriverRef FaultyDriver::ref() { return faults::Driver(&parts_->gate); }

void FaultyDriver::Mend() {
  faults_.resize(fired_);
  parts_->gate.Rearm(faults::Plan(), faults::Anew::Occurrences);
}

void FaultyDriver::BeforeCall(void* self, driver::BaseId base) noexcept {
  auto* const me = static_cast<FaultyDriver*>(self);
  if (me->fired_ == me->faults_.size() || driver::LegalCodes(base).empty()) return;
  if (me->calls_++ == me->faults_[me->fired_].after_calls) me->Fire(base);
}

// The call that is about to come fails.
void FaultyDriver::Fire(driver::BaseId base) {
  const ChosenFault& chosen = faults_[fired_++];
  calls_ = 0;
  const std::span<const CUresult> codes = driver::LegalCodes(base);
  faults::Fault fault;
  fault.base = base;
  fault.how = chosen.how;
  fault.burst = 2;
  fault.code = chosen.how == faults::How::Sticky ? CUDA_ERROR_LAUNCH_FAILED : codes[chosen.code % codes.size()];
  faults::Plan plan;
  (void)plan.Add(fault);
  parts_->gate.Rearm(plan, faults::Anew::Occurrences);
  char text[faults::kMaxFaultText];
  text_.append(text, faults::FormatFault(fault, text, sizeof(text)));
  text_ += ' ';
  lost_ = lost_ || chosen.how == faults::How::Sticky;
}

std::span<const faults::Record> FaultyDriver::Calls() {
  Fold();
  return parts_->journal->View().records();
}

void FaultyDriver::Fold() {
  const std::span<const faults::Record> all = parts_->journal->View().records();
  for (; folded_ < all.size(); ++folded_) Fold(all[folded_]);
}

void FaultyDriver::Fold(const faults::Record& record) {
  if (record.kind != faults::RecordKind::Call) return;
  const driver::BaseId base = BaseOf(record);
  const driver::EffectRow& row = driver::EffectOf(base);
  const bool injected = IsInjected(record);
  const auto code = static_cast<CUresult>(record.result);
  if (base == driver::BaseId::PointerGetAttribute && injected) {
    said_gone_ = said_gone_ || code == CUDA_ERROR_INVALID_VALUE;
    // In a lost context memory counts as gone with it, whatever became of it.
    if (!driver::IsSticky(code)) return;
    for (const driver::Kind kind : {driver::Kind::DeviceMemory, driver::Kind::PinnedMemory}) {
      if (bytes_.count({kind, record.argument[2]}) != 0) refused_[{kind, record.argument[2]}] = 1;
    }
    return;
  }
  const bool is_done = injected ? (record.flags & faults::kForwarded) != 0 : code == CUDA_SUCCESS;
  if (row.kind == driver::Kind::ContextStackEntry || row.object < 0) return;
  const Object object{row.kind, record.argument[row.object]};
  if (row.effect == driver::Effect::ReleasesRange) {  // a mapping for each page
    const auto begin = bytes_.lower_bound(object);
    const auto end = bytes_.lower_bound({row.kind, object.second + record.argument[row.bytes]});
    std::vector<Object> inside;
    std::transform(begin, end, std::back_inserter(inside), [](const auto& mapping) { return mapping.first; });
    for (const Object& mapping : inside) Release(mapping, injected, is_done);
  } else if (driver::IsRelease(row.effect)) {
    Release(object, injected, is_done);
  } else if (driver::IsAcquire(row.effect) && is_done) {
    bytes_[object] = row.bytes < 0 ? 0 : record.argument[row.bytes];
    if (injected) ++denied_[object];
  }
}

void FaultyDriver::Release(const Object& object, bool injected, bool is_done) {
  const bool is_counted = object.first == driver::Kind::PrimaryContext;  // a reference has no name: one that is given back is another
  if (!is_done) {
    // Of what is not there, or not any more, nothing is kept.
    if (injected && bytes_.count(object) != 0) refused_[object] = is_counted ? refused_[object] + 1 : 1;
  } else if (!is_counted) {
    if (injected) gone_bytes_ += bytes_[object];
    refused_.erase(object);
    denied_.erase(object);
    bytes_.erase(object);
  }
}

std::uint64_t FaultyDriver::Refused(driver::Kind kind) {
  Fold();
  std::uint64_t count = 0;
  for (const auto& [object, times] : refused_) count += object.first == kind ? times : 0;
  return count;
}

std::uint64_t FaultyDriver::Kept(driver::Kind kind) {
  std::uint64_t count = Refused(kind);
  for (const auto& [object, times] : denied_) {
    const bool is_another = kind == driver::Kind::PrimaryContext || refused_.count(object) == 0;
    count += object.first == kind && is_another ? times : 0;
  }
  return count;
}

std::uint64_t FaultyDriver::KeptBytes() {
  Fold();
  std::uint64_t bytes = 0;
  for (const auto* kept : {&refused_, &denied_}) {
    for (const auto& [object, times] : *kept) {
      const bool is_memory = object.first == driver::Kind::DeviceMemory || object.first == driver::Kind::PhysicalMemory ||
                             object.first == driver::Kind::Mapping;
      if (const auto known = bytes_.find(object); is_memory && known != bytes_.end()) bytes += known->second;
    }
  }
  return bytes;
}

std::uint64_t FaultyDriver::GoneBytes() {
  Fold();
  return gone_bytes_;
}

}  // namespace cuaudit::alloc
