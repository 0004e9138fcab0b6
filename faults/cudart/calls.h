// SPDX-License-Identifier: MIT
// calls.h: the runtime's functions, one per row of calls.def, as cuaudit::cudart::<name without cuda>.
//
//   Owns      nothing; what a function acquires is the program's.
//   Threads   safe; as the driver below.
//   Streams   the DriverRef that a function is given already knows what stream 0 means.
//   Errors    cudaError_t. The way out (process.h) notes it as the thread's last error; functions only return.
//   Faults    each makes the driver calls that its text names.
//   Source    CUDA Runtime API 13.0. Each function stands in the .cc file of its family; the declarations are generated from the
//             headers, so a definition with another signature does not link.
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "faults/cudart/process.h"

namespace cuaudit::cudart {

#include "cudart_declarations.inc"

// What FromDriver is in a chain: `return From(driver.StreamQuery(stream));`
inline cudaError_t From(CUresult result) noexcept { return FromDriver(result); }

inline CUdeviceptr Address(const void* pointer) noexcept { return reinterpret_cast<CUdeviceptr>(pointer); }
inline void* Pointer(CUdeviceptr address) noexcept { return reinterpret_cast<void*>(address); }  // NOLINT(performance-no-int-to-ptr)
inline CUarray Array(cudaArray_const_t array) noexcept { return reinterpret_cast<CUarray>(const_cast<cudaArray*>(array)); }

}  // namespace cuaudit::cudart
