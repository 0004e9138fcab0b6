// SPDX-License-Identifier: MIT
// symbols.h: finds the device address of a variable that is one side of a copy.
//
//   Units     bytes.
//   Errors    cudaErrorInvalidSymbol for an address that was never registered, cudaErrorInvalidValue for a range beyond the variable.
//   Faults    makes the driver calls of AddressOf in registry.h.
//   Source    CUDA Runtime API 13.0, cudaMemcpyToSymbol and the calls beside it.
#pragma once

#include "faults/cudart/process.h"

namespace cuaudit::cudart {

cudaError_t Locate(DriverRef driver, const void* symbol, size_t offset, size_t count, CUdeviceptr* address) noexcept;

}  // namespace cuaudit::cudart
