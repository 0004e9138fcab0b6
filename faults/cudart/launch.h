// SPDX-License-Identifier: MIT
// launch.h: launches a registered kernel, for <<<...>>> and cudaLaunchKernel alike.
//
//   Streams   queued on `stream`.
//   Errors    cudaErrorInvalidDeviceFunction for a kernel that was never registered; else the driver's error.
//   Faults    calls the driver: LibraryLoadData and LibraryGetKernel at the first launch, then LaunchKernel or LaunchCooperativeKernel.
//   Source    CUDA Runtime API 13.0, Execution Control.
#pragma once

#include "faults/cudart/registry.h"

namespace cuaudit::cudart {

cudaError_t LaunchRegistered(DriverRef driver, Function* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream, bool cooperative) noexcept;

// Converts the launch configuration. The attributes have the same layout in both, so the result points to the caller's.
CUlaunchConfig PlanLaunch(const cudaLaunchConfig_t& config) noexcept;

}  // namespace cuaudit::cudart
