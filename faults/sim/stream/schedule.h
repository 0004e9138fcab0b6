// SPDX-License-Identifier: MIT
// schedule.h: what runs next, and how one operation is run.
#pragma once

#include "faults/sim/graph/executable.h"
#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

// Runs one piece of work.
//
//   Threads   the caller holds the world's lock. Host functions and host kernels run with the lock released.
//   Errors    ILLEGAL_ADDRESS for memory that was freed meanwhile, or outside live memory; LAUNCH_TIMEOUT for a wait that was given up.

inline constexpr std::uint64_t kOperationTime = 1000;  // virtual nanoseconds of every operation

// Runs one piece of work now, as part of the stream's current operation. One that ends hollow (Hollow) always succeeds.
CUresult Perform(World& world, Thread* thread, Stream* stream, const Work& work) noexcept;
void CallHost(World& world, Thread* thread, Inside what, CUhostFn function, void* argument) noexcept;
// Runs the kernel's host function, or counts the launch as idle. `plan` is the launched graph's plan, if the kernel is a node.
CUresult RunKernel(World& world, Thread* thread, const Stream* stream, const Work& work, Plan* plan) noexcept;

// Runs queued operations, each of them one piece of work or a launched graph.
//
//   Threads   the caller holds the world's lock. Host functions run with the lock released and their stream marked busy; other threads may
//             run operations of other streams meanwhile.
//   Errors    an operation that fails makes its context sticky; waiting then returns that code.
//   Source    CUDA Driver API 13.0, Stream synchronization behavior.

// Performs work at once, without the queue. Requires that nothing is queued in the world. Counts as a wait of the host.
void PerformAtOnce(Call& call, Stream* stream, const Work& work) noexcept;

// Which host threads may notice, without a driver call, that an operation has run.
enum class Seen : std::uint8_t { ByNobody, ByOthers, ByAll };  // ByOthers: all but the thread in whose call it ran
// Runs the stream's first operation, which must be runnable, and removes it from the queue.
void RunHead(World& world, Thread* thread, Stream* stream, Seen seen) noexcept;

// Runs the steps of a launched graph on the stream now. Requires that the launch is the stream's current operation. LAUNCH_TIMEOUT when a
// `while` node does not end; otherwise the first failing step's error.
CUresult RunPlan(World& world, Thread* thread, Stream* stream, Plan* plan) noexcept;

// Decides which queued operation runs next, and when.
//
//   Threads   the caller holds the world's lock. These functions may release it (for host functions, or to wait for another thread's), so
//             handles must be looked up again afterwards.
//   Errors    a wait for a value that never comes ends after the world's patience (value_work.h). A host function that never ends blocks
//             its waiters, as on a device.
//   Source    CUDA Driver API 13.0, for the order of streams.

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
// More operations than these do not stay queued: a device works also while nobody waits.
inline constexpr std::uint64_t kMostPending = 1U << 18;
// At the end of every call: runs what the schedule wants to run on its own, and what is more than kMostPending.
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
