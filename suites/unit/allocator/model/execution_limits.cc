// SPDX-License-Identifier: MIT
// Programs whose allocator has less than the device: limits, who is told that memory ran out, and who frees some.
#include <algorithm>

#include "suites/unit/allocator/model/execution.h"

namespace cuaudit::alloc {

void Execution::DoSetFraction(const Step& step) {
  const int device = At(step.b)->device;
  const double fraction = (step.a % 4 + 1) / 4.0;
  std::size_t total = 0;
  Say("SetMemoryFraction(%d, %g);", device, fraction);
  if (!Ok(d_.DeviceTotalMem(&total, device), "DeviceTotalMem")) return;
  if (Took(allocator_->SetMemoryFraction(device, fraction), "SetMemoryFraction"))
    limit_[device] = static_cast<std::size_t>(fraction * static_cast<double>(total));
}

// Of a new allocator: its limits, and who is told of them.
void Execution::Observe() {
  for (int device = 0; device < program_.devices; ++device) {
    std::size_t total = 0;
    if (!Ok(d_.DeviceTotalMem(&total, device), "DeviceTotalMem")) return;
    const double fraction = program_.options.memory_fraction;
    limit_[device] = fraction < 1.0 ? static_cast<std::size_t>(fraction * static_cast<double>(total)) : ~std::size_t{0};
  }
  if (program_.observes) (void)Took(allocator_->AddOomObserver({this, OnOom}), "AddOomObserver");
  if (program_.gives_back) (void)Took(allocator_->AddFreeMemoryCallback({this, OnFull}), "AddFreeMemoryCallback");
}

// No lock is held: it may take a snapshot.
void Execution::OnOom(void* self, const OutOfMemory& account) noexcept {
  auto* const me = static_cast<Execution*>(self);
  Snapshot snapshot;
  if (me->allocator_->TakeSnapshot(&snapshot) != CUDA_SUCCESS) me->Fail("TakeSnapshot: refused to an observer");
  me->accounts_.push_back(account);
}

// No lock is held: it may call Free. Each third time, a block whose uses have all been told of.
bool Execution::OnFull(void* self, int device, std::size_t) noexcept {
  auto* const me = static_cast<Execution*>(self);
  if (++me->full_ % 3 != 0) return false;
  for (const auto& [address, block] : me->blocks_) {
    if (block->device != device || block->capture >= 0 || block->kept != 0 || !block->untold.empty()) continue;
    // The allocation that asks goes on, and is judged without what Free was told.
    const std::size_t heard = me->heard_;
    auto within = std::move(me->within_);
    const std::size_t from = me->faulty_ == nullptr ? 0 : me->faulty_->Calls().size();
    me->heard_ = from;
    me->DoFree(block.get());
    within.emplace_back(from, me->heard_);
    me->heard_ = heard;
    me->within_ = std::move(within);
    return !me->failed();
  }
  return false;
}

// It grows up to the limit and no further.
void Execution::CheckGrowth(int device, std::int64_t before) {
  if (limit_[device] == ~std::size_t{0}) return;
  Statistics now;
  allocator_->GetStatistics(device, &now);
  const std::int64_t reserved = now.reserved_bytes[0].current;
  if (reserved > before && static_cast<std::size_t>(reserved) > limit_[device])
    Fail("%lld bytes reserved beyond the limit of %zu", static_cast<long long>(reserved), limit_[device]);
}

// Observers hear of each allocation that finds no memory, once, and of no other.
void Execution::CheckAccount(const Step& step, int device, CUresult result, bool was_injected) {
  if (!program_.observes || failed()) return;
  const std::size_t wanted = result == CUDA_ERROR_OUT_OF_MEMORY ? 1 : 0;
  if (accounts_.size() > wanted || (accounts_.size() < wanted && !was_injected))
    return Fail("%zu observers' calls for %s", accounts_.size(), wanted != 0 ? "an allocation out of memory" : "an allocation");
  if (accounts_.empty()) return;
  const OutOfMemory& account = accounts_.front();
  Statistics now;
  allocator_->GetStatistics(device, &now);
  if (account.device != device || account.requested != step.bytes || account.limit != limit_[device] ||
      account.allocated != static_cast<std::size_t>(now.allocated_bytes[0].current) ||
      account.reserved != static_cast<std::size_t>(now.reserved_bytes[0].current) || allocator_->LastOutOfMemory().requested != step.bytes)
    Fail("the account of an allocation out of memory is another's");
}

}  // namespace cuaudit::alloc
