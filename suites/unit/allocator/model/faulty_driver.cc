// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "suites/unit/allocator/model/faulty_driver.h"

#include <span>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/shim/gate.h"

namespace cuaudit::alloc {

struct FaultyDriver::Parts {
  faults::Gate gate;
};

FaultyDriver::FaultyDriver(driver::DriverRef next, std::vector<ChosenFault> faults)
    : parts_(std::make_unique<Parts>()), faults_(std::move(faults)) {
  parts_->gate.Arm(next, nullptr, nullptr, faults::Plan(), faults::Scope::Process);
  parts_->gate.Watch({BeforeCall, this});
}

FaultyDriver::~FaultyDriver() = default;

driver::DriverRef FaultyDriver::ref() { return faults::Driver(&parts_->gate); }

void FaultyDriver::Mend() {
  faults_.resize(fired_);
  lasting_ = false;
  parts_->gate.Rearm(faults::Plan(), nullptr);
}

void FaultyDriver::BeforeCall(void* self, driver::BaseId base) noexcept {
  auto* const me = static_cast<FaultyDriver*>(self);
  const driver::EffectRow& row = driver::EffectOf(base);
  me->refused_of_[static_cast<std::size_t>(row.kind)] += me->lasting_ && base == me->latest_ && driver::IsRelease(row.effect);
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
  parts_->gate.Rearm(plan, nullptr);
  char text[faults::kMaxFaultText];
  text_.append(text, faults::FormatFault(fault, text, sizeof(text)));
  text_ += ' ';
  lasting_ = chosen.how == faults::How::Persist || chosen.how == faults::How::Burst;
  lost_ = lost_ || fault.code == CUDA_ERROR_DEINITIALIZED || driver::IsSticky(fault.code);
  latest_ = base;
  const driver::EffectRow& row = driver::EffectOf(base);
  if (chosen.how != faults::How::After) {
    refused_of_[static_cast<std::size_t>(row.kind)] += driver::IsRelease(row.effect);
    return;
  }
  gone_ = gone_ || driver::IsRelease(row.effect);
  unsure_ = unsure_ || base == driver::BaseId::MemMap;
  if (!driver::IsAcquire(row.effect)) return;
  unclaimed_ = true;
  ++unclaimed_of_[static_cast<std::size_t>(row.kind)];
}

}  // namespace cuaudit::alloc
