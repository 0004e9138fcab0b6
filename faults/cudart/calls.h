// SPDX-License-Identifier: MIT
// calls.h: declares the implementation of every runtime function in calls.def. Here cudaMalloc is cuaudit::cudart::Malloc, and so on.
//
//   Streams   the DriverRef passed to a function already selects the legacy or the per-thread default stream for stream 0.
//   Errors    functions only return a cudaError_t. Record() in process.h stores the result as the thread's last error.
//   Source    CUDA Runtime API 13.0. The declarations are generated from its headers, so a definition with another signature does not link.
//             Each function is defined in the .cc file that calls.def names for its group.
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "faults/cudart/process.h"

namespace cuaudit::cudart {

#include "cudart_declarations.inc"

// Short name of FromDriver for one-line implementations: `return From(driver.StreamQuery(stream));`
inline cudaError_t From(CUresult result) noexcept { return FromDriver(result); }

inline CUdeviceptr Address(const void* pointer) noexcept { return reinterpret_cast<CUdeviceptr>(pointer); }
inline void* Pointer(CUdeviceptr address) noexcept { return reinterpret_cast<void*>(address); }  // NOLINT(performance-no-int-to-ptr)
inline CUarray Array(cudaArray_const_t array) noexcept { return reinterpret_cast<CUarray>(const_cast<cudaArray*>(array)); }

}  // namespace cuaudit::cudart
