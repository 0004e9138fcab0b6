// SPDX-License-Identifier: MIT
// launch.h: what a kernel launch is refused for. The kernel itself does nothing.
//
//   Owns      nothing.
//   Threads   the world's lock is held by every caller.
//   Errors    INVALID_HANDLE for an unknown function, INVALID_VALUE for impossible dimensions, shared memory or parameters.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuLaunchKernel; limits of compute 9.0.
#pragma once

#include "faults/sim/module.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

CUresult CheckKernel(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept;

}  // namespace cuaudit::sim
