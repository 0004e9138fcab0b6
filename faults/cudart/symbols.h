// SPDX-License-Identifier: MIT
// symbols.h: a device variable as one side of a copy.
//
//   Owns      nothing.
//   Threads   safe.
//   Units     bytes.
//   Errors    cudaErrorInvalidSymbol for what was never registered, cudaErrorInvalidValue for a range beyond the variable.
//   Faults    makes driver calls: those of registry.h's AddressOf.
//   Source    CUDA Runtime API 13.0, cudaMemcpyToSymbol and its kin.
#pragma once

#include "faults/cudart/process.h"

namespace cuaudit::cudart {

cudaError_t Locate(DriverRef driver, const void* symbol, size_t offset, size_t count, CUdeviceptr* address) noexcept;

}  // namespace cuaudit::cudart
