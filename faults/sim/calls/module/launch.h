// SPDX-License-Identifier: MIT
// launch.h: queues kernel launches. perform.h runs what stands for the kernel.
//
//   Threads   the caller holds the world's lock.
//   Errors    those of CheckKernel (arguments.h).
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// Refuses the launch for `reason`. That ends the capture of its stream (suites/contract, runtime_fact.refused_launch_while_capturing).
CUresult RefuseLaunch(Call& call, CUstream stream, CUresult reason) noexcept;
// Queues the launch, or captures it.
CUresult LaunchOn(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, CUstream stream, bool cooperative) noexcept;

}  // namespace cuaudit::sim
