// SPDX-License-Identifier: MIT
// schedule.h: decides which queued operation runs next, and when.
//
//   Threads   the caller holds the world's lock. These functions may release it (for host functions, or to wait for another thread's), so
//             handles must be looked up again afterwards.
//   Errors    a wait for a value that never comes ends after the world's patience (value_work.h). A host function that never ends blocks
//             its waiters, as on a device.
//   Source    CUDA Driver API 13.0, for the order of streams.
#pragma once

#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

// The goal that all operations of `stream` with tickets below `limit` have run.
struct Goal {
  Stream* stream = nullptr;
  std::uint64_t limit = 0;
};
inline bool IsReached(const Goal& goal) noexcept { return goal.stream->head == nullptr || goal.stream->head->ticket >= goal.limit; }

// The goal that must be reached before the stream's first operation may run; stream null: there is none.
Goal ObstacleOf(World& world, const Stream* stream) noexcept;
// Runs operations in the schedule's order until the goal is reached.
void Reach(World& world, Thread* thread, Goal goal) noexcept;
// Runs what can run toward the goal. It does not wait, neither for another thread's host function nor for a value.
void RunToward(World& world, Thread* thread, Goal goal) noexcept;
// Call this when a query found the goal unreached: it runs one operation, so that polling ends.
void Nudge(World& world, Thread* thread, Goal goal) noexcept;
// Runs one runnable operation while the program waits on the CPU, which sees it. False: there is none.
bool RunOne(World& world, Thread* thread) noexcept;
// At the end of every call: runs what the schedule wants to run on its own.
void Advance(World& world, Thread* thread) noexcept;

// Waits for queued work.
//
//   Threads   the caller holds the world's lock, which is released for host functions and while another thread runs one.
//   Errors    an operation that fails makes its context sticky.

// Waits for what is queued now.
void Drain(Call& call, Stream* stream) noexcept;
// With `green`: only that green context's streams.
void DrainContext(Call& call, Context* context, const GreenContext* green = nullptr) noexcept;
void DrainMarker(Call& call, Marker* marker) noexcept;
// Waits for the legacy stream, and so for every blocking one.
void DrainLegacy(Call& call, Context* context) noexcept;

}  // namespace cuaudit::sim
