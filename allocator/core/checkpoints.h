// SPDX-License-Identifier: MIT
// checkpoints.h: how a private pool is cut up, taken and put back.
//
//   Threads   nobody else may use the pool meanwhile; an arena's lock is held while it is read or restored.
//   Errors    as Allocator::TakeCheckpoint and RestoreCheckpoint; then nothing is changed.
//   Faults    makes no driver calls.
#pragma once

#include "allocator/tables/pool_table.h"
#include "allocator/tables/thread_caches.h"

namespace cuaudit::alloc {

class Checkpoints {
 public:
  Checkpoints(Environment& environment, Devices& devices, PoolTable& pools, ThreadCaches& caches) noexcept
      : env_(environment), devices_(devices), pools_(pools), caches_(caches) {}
  CUresult Take(int device, PoolId pool, Checkpoint* out) noexcept;
  CUresult Restore(const Checkpoint& checkpoint, RestoreResult* out) noexcept;

 private:
  void RestoreArena(Arena* arena, const Checkpoint& checkpoint, Block** spares, RestoreResult* out) noexcept;
  Environment& env_;
  Devices& devices_;
  PoolTable& pools_;
  ThreadCaches& caches_;
};

}  // namespace cuaudit::alloc
