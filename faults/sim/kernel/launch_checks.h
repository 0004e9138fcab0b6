// SPDX-License-Identifier: MIT
// launch_checks.h: what makes a kernel launch impossible, whatever the stream.
//
//   Threads   the caller holds the world's lock.
//   Errors    INVALID_HANDLE for an unknown function or one of another context, INVALID_VALUE for impossible dimensions, shared memory or
//             parameters, LAUNCH_OUT_OF_RESOURCES for more bytes of parameters than the kernel takes.
//   Source    CUDA Driver API 13.0, cuLaunchKernel, cuLaunchKernelEx; details as an H200 answers (suites/contract, launch.*).
#pragma once

#include "faults/sim/kernel/module.h"
#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// `context`: where the kernel will run; null: the context of its function.
CUresult CheckKernel(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const Context* context) noexcept;
// A cooperative launch needs all of its blocks resident at once.
CUresult CheckCooperative(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept;
CUresult CheckCluster(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const CUlaunchAttributeValue& value) noexcept;

}  // namespace cuaudit::sim
