// SPDX-License-Identifier: MIT
// launch.h: a registered kernel's launch, behind <<<...>>> and cudaLaunchKernel alike.
//
//   Owns      nothing.
//   Threads   safe.
//   Streams   queued on `stream`.
//   Units     bytes.
//   Errors    cudaErrorInvalidDeviceFunction for a kernel that was never registered; else as the driver answers.
//   Faults    makes driver calls: LibraryLoadData and LibraryGetKernel the first time, LaunchKernel or LaunchCooperativeKernel.
//   Source    CUDA Runtime API 13.0, execution control.
#pragma once

#include "faults/cudart/registry.h"

namespace cuaudit::cudart {

cudaError_t LaunchRegistered(DriverRef driver, Function* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream, bool cooperative) noexcept;

// The driver's structure for the runtime's; attributes are the same memory in both.
CUlaunchConfig PlanLaunch(const cudaLaunchConfig_t& config) noexcept;

}  // namespace cuaudit::cudart
