// SPDX-License-Identifier: MIT
// perform.h: performs one piece of work, now. executor.h runs launched graphs and queued operations.
//
//   Threads   the caller holds the world's lock. Host functions and host kernels run with the lock released.
//   Errors    ILLEGAL_ADDRESS for memory that was freed meanwhile, or outside live memory; LAUNCH_TIMEOUT for a wait that was given up.
#pragma once

#include "faults/sim/graph/plan.h"

namespace cuaudit::sim {

inline constexpr std::uint64_t kOperationTime = 1000;  // virtual nanoseconds of every operation

// Runs one piece of work now, as part of the stream's current operation. One that ends hollow (Hollow) always succeeds.
CUresult Perform(World& world, Thread* thread, Stream* stream, const Work& work) noexcept;
void CallHost(World& world, Thread* thread, Inside what, CUhostFn function, void* argument) noexcept;
// Runs the kernel's host function, or counts the launch as idle. `plan` is the launched graph's plan, if the kernel is a node.
CUresult RunKernel(World& world, Thread* thread, const Stream* stream, const Work& work, Plan* plan) noexcept;

}  // namespace cuaudit::sim
