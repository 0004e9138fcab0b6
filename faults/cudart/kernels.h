// SPDX-License-Identifier: MIT
// kernels.h: finds the driver's kernel behind each of the three values that a program may pass as a kernel.
//
//   Owns      the list of kernels that cudaLibraryGetKernel and cudaLibraryEnumerateKernels returned.
//   Threads   safe.
//   Errors    cudaErrorInvalidDeviceFunction for null, cudaErrorInvalidResourceHandle for an address that is not a kernel.
//   Faults    calls the driver: KernelGetFunction, and the calls of registry.h.
//   Source    CUDA Runtime API 13.0: a kernel is the address of its host stub, a cudaKernel_t of cudaGetKernel, or one of a library.
#pragma once

#include "faults/cudart/registry.h"

namespace cuaudit::cudart {

cudaError_t ResolveKernel(DriverRef driver, const void* address, CUkernel* kernel) noexcept;
// The kernel as a CUfunction, which the driver's launches and queries accept.
cudaError_t ResolveFunction(DriverRef driver, const void* address, CUfunction* function) noexcept;
// Records a kernel of a library that the program loaded itself.
cudaError_t NoteKernel(CUkernel kernel, CUlibrary library) noexcept;
void ForgetKernelsOf(CUlibrary library) noexcept;

// Launches a registered kernel, for <<<...>>> and cudaLaunchKernel alike.
//
//   Streams   queued on `stream`.
//   Errors    cudaErrorInvalidDeviceFunction for a kernel that was never registered; else the driver's error.
//   Faults    calls the driver: LibraryLoadData and LibraryGetKernel at the first launch, then LaunchKernel or LaunchCooperativeKernel.
//   Source    CUDA Runtime API 13.0, Execution Control.

cudaError_t LaunchRegistered(DriverRef driver, Function* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream, bool cooperative) noexcept;

// Converts the launch configuration. The attributes have the same layout in both, so the result points to the caller's.
CUlaunchConfig PlanLaunch(const cudaLaunchConfig_t& config) noexcept;

}  // namespace cuaudit::cudart
