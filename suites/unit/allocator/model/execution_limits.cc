// SPDX-License-Identifier: MIT
// Programs whose allocator has less than the device: limits, who is told that memory ran out, and who frees some.

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

// Private pools: their life, and checkpoints.

void Execution::DoPool(const Step& step) {
  UserPool& pool = pools_[step.a];
  switch (step.act) {
    case Act::CreatePool: {
      if (pool.exists) return;
      PoolOptions options;
      pool = {};
      options.no_split = pool.no_split = (step.b & 1) != 0;
      options.use_on_oom = (step.b & 2) != 0;
      Say("p%d = CreatePool({.use_on_oom = %d, .no_split = %d});", step.a, options.use_on_oom, options.no_split);
      pool.exists = Took(allocator_->CreatePool(options, &pool.id), "CreatePool");
      return;
    }
    case Act::BeginPool:
      if (!pool.exists || pool.routed || AnyCapture()) return;
      Say("BeginAllocateToPool(p%d);", step.a);
      pool.routed = Took(allocator_->BeginAllocateToPool(0, pool.id, {}), "BeginAllocateToPool");
      return;
    case Act::EndPool:
      if (!pool.routed) return;
      Say("EndAllocateToPool(p%d);", step.a);
      pool.routed = !Took(allocator_->EndAllocateToPool(0, pool.id), "EndAllocateToPool");
      (void)allocator_->ReleasePool(pool.id);  // the user that BeginAllocateToPool added
      return;
    case Act::ReleasePool:
      if (!pool.exists || pool.routed) return;
      Say("ReleasePool(p%d);", step.a);
      pool.exists = !Took(allocator_->ReleasePool(pool.id), "ReleasePool");
      return;
    case Act::EmptyPool:
      if (!pool.exists || pool.routed || AnyCapture()) return;
      Say("EmptyCache(p%d);", step.a);
      (void)Took(allocator_->EmptyCache(pool.id), "EmptyCache(pool)");
      return;
    case Act::TakeCheckpoint: {
      if (!pool.exists) return;
      Say("TakeCheckpoint(p%d);", step.a);
      const CUresult result = allocator_->TakeCheckpoint(0, pool.id, &pool.checkpoint);
      if (result != CUDA_ERROR_ILLEGAL_STATE) (void)Took(result, "TakeCheckpoint");
      pool.has_checkpoint = result == CUDA_SUCCESS;
      return;
    }
    case Act::Restore:
      if (pool.exists && pool.has_checkpoint && !AnyCapture()) DoRestore(&pool);
      return;
    default:
      return;
  }
}

void Execution::DoRestore(UserPool* pool) {
  SynchronizeAll();
  Say("RestoreCheckpoint(p%d);", static_cast<int>(pool - pools_));
  RestoreResult done;
  const CUresult result = allocator_->RestoreCheckpoint(pool->checkpoint, &done);
  // There may be uses, and EmptyCache may have taken segments.
  if (result == CUDA_ERROR_ILLEGAL_STATE || result == CUDA_ERROR_INVALID_VALUE || !Took(result, "RestoreCheckpoint")) return;
  ++outcome_.restores;
  for (const CUdeviceptr address : done.freed) {
    const auto at = blocks_.find(address);
    if (at == blocks_.end()) return Fail("restoring freed what was not allocated");
    if (at->second->slot >= 0) slots_[at->second->slot] = nullptr;
    for (const Told& told : at->second->told) (void)Ok(d_.EventDestroy(told.event), "EventDestroy");
    blocks_.erase(at);
  }
  Snapshot snapshot;
  if (!Took(allocator_->TakeSnapshot(&snapshot), "TakeSnapshot")) return;
  for (const CUdeviceptr address : done.allocated) {
    auto block = std::make_unique<Block>();
    block->address = address;
    for (const SnapshotSegment& segment : snapshot.segments) {
      for (const SnapshotBlock& one : segment.blocks) {
        if (one.address != address) continue;
        block->bytes = one.requested;
        block->size = one.size;
        for (const auto& stream : streams_) {
          if (stream->id == one.stream) block->owner = stream->number;
        }
      }
    }
    if (block->size == 0) return Fail("restoring allocated what the snapshot does not have");
    for (int slot = 0; slot < kSlots && block->slot < 0; ++slot) {
      if (slots_[slot] == nullptr) block->slot = slot;
    }
    if (block->slot >= 0) slots_[block->slot] = block.get();
    CheckGiven(*block, block->bytes, true);
    blocks_[address] = std::move(block);
  }
}

}  // namespace cuaudit::alloc
