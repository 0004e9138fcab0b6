// SPDX-License-Identifier: MIT
// schedule.h: which queued operation runs next, and when.
//
//   Owns      nothing.
//   Threads   the world's lock is held by every caller and may be released in between (host functions, or to wait for another
//             thread's): afterwards handles have to be looked up again.
//   Errors    none. What waits for a value that never comes is given up after the world's patience (value_work.h); a host function that
//             never ends keeps its waiters, as on a device.
//   Faults    makes no driver calls.
//   Source    ours; order of streams after the CUDA Driver API 13.0.
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

// The operations of `stream` with tickets below `limit`.
struct Goal {
  Stream* stream = nullptr;
  std::uint64_t limit = 0;
};
inline bool IsReached(const Goal& goal) noexcept { return goal.stream->head == nullptr || goal.stream->head->ticket >= goal.limit; }

// What has to run before the stream's first operation may; stream null: nothing.
Goal ObstacleOf(World& world, const Stream* stream) noexcept;
// Runs, as the schedule orders, until the goal is reached.
void Reach(World& world, Thread* thread, Goal goal) noexcept;
// A query found the goal unreached: runs one operation, so that polling ends.
void Nudge(World& world, Thread* thread, Goal goal) noexcept;
// Runs one operation that can run, while the program waits on the CPU, which sees it. False: there is none.
bool RunOne(World& world, Thread* thread) noexcept;
// What the schedule runs on its own at the end of every call.
void Advance(World& world, Thread* thread) noexcept;

}  // namespace cuaudit::sim
