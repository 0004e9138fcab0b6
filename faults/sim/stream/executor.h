// SPDX-License-Identifier: MIT
// executor.h: runs queued operations, one piece of work each or a launched graph. schedule.h decides which one runs next.
//
//   Threads   the caller holds the world's lock. Host functions and host kernels run with the lock released.
//   Errors    ILLEGAL_ADDRESS for memory that was freed meanwhile, or outside live memory; LAUNCH_TIMEOUT for a wait that was given up.
#pragma once

#include "faults/sim/graph/executable.h"
#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

inline constexpr std::uint64_t kOperationTime = 1000;  // virtual nanoseconds of every operation

// Runs one piece of work now, as part of the stream's current operation. One that ends hollow (Hollow) always succeeds.
CUresult Perform(World& world, Thread* thread, Stream* stream, const Work& work) noexcept;
void CallHost(World& world, Thread* thread, Inside what, CUhostFn function, void* argument) noexcept;
// Runs the kernel's host function, or counts the launch as idle. `plan` is the launched graph's plan, if the kernel is a node.
CUresult RunKernel(World& world, Thread* thread, const Stream* stream, const Work& work, Plan* plan) noexcept;

// Runs queued operations. schedule.h decides which one runs next.
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

}  // namespace cuaudit::sim
