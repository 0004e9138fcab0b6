// SPDX-License-Identifier: MIT
// launch.h: what a kernel launch is refused for. What runs in the kernel's place: host_kernel.h.
//
//   Owns      nothing.
//   Threads   the world's lock is held by every caller.
//   Errors    INVALID_HANDLE for an unknown function or one of another context, INVALID_VALUE for impossible dimensions, shared memory
//             or parameters, LAUNCH_OUT_OF_RESOURCES for more bytes of parameters than the kernel takes.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, cuLaunchKernel, cuLaunchKernelEx; details as an H200 answers.
#pragma once

#include "faults/sim/module.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

// `context` is where it will run; null: wherever its function belongs.
CUresult CheckKernel(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const Context* context) noexcept;
// All blocks must be resident at once.
CUresult CheckCooperative(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept;
CUresult CheckCluster(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const CUlaunchAttributeValue& value) noexcept;
// For that reason the launch is refused, which ends the capture of its stream (runtime_fact.refused_launch_while_capturing).
CUresult RefuseLaunch(Call& call, CUstream stream, CUresult reason) noexcept;
// Queues or captures it.
CUresult LaunchOn(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, CUstream stream, bool cooperative) noexcept;

}  // namespace cuaudit::sim
