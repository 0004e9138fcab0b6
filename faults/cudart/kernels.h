// SPDX-License-Identifier: MIT
// kernels.h: the three things that a program may pass as a kernel, and the driver's kernel behind each.
//
//   Owns      the list of the kernels that cudaLibraryGetKernel and cudaLibraryEnumerateKernels gave out.
//   Threads   safe.
//   Errors    cudaErrorInvalidDeviceFunction for null, cudaErrorInvalidResourceHandle for an address that stands for no kernel.
//   Faults    makes driver calls: those of registry.h; KernelGetFunction.
//   Source    CUDA Runtime API 13.0: a kernel's own address, a cudaKernel_t of cudaGetKernel, or one of a library.
#pragma once

#include "faults/cudart/registry.h"

namespace cuaudit::cudart {

cudaError_t ResolveKernel(DriverRef driver, const void* address, CUkernel* kernel) noexcept;
// As a CUfunction, which the driver's launches and queries take in a kernel's place.
cudaError_t ResolveFunction(DriverRef driver, const void* address, CUfunction* function) noexcept;
// A kernel of a library that the program loaded itself.
cudaError_t NoteKernel(CUkernel kernel, CUlibrary library) noexcept;
void ForgetKernelsOf(CUlibrary library) noexcept;

}  // namespace cuaudit::cudart
