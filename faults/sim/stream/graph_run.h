// SPDX-License-Identifier: MIT
// graph_run.h: runs the steps of a launched graph.
//
//   Threads   the caller holds the world's lock; host functions run without it.
//   Errors    LAUNCH_TIMEOUT when a `while` node does not end; otherwise the first failing step's.
#pragma once

#include "faults/sim/graph/plan.h"

namespace cuaudit::sim {

// Runs a launch's steps on the stream now. Requires that the launch is the stream's current operation.
CUresult RunPlan(World& world, Thread* thread, Stream* stream, Plan* plan) noexcept;

}  // namespace cuaudit::sim
