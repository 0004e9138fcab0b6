// SPDX-License-Identifier: MIT
// Private pools: their life, and checkpoints.
#include "suites/unit/allocator/model/execution.h"

namespace cuaudit::alloc {

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
