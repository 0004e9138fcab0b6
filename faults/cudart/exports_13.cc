// SPDX-License-Identifier: MIT
// exports_13.cc: every function of libcudart.so.13 but those that nvcc's generated code calls.
#pragma GCC visibility push(default)
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include "faults/cudart/exports.h"

namespace cuaudit::cudart {

const int kRuntimeVersion = 13000;

}  // namespace cuaudit::cudart

#include "cudart_exports_13.inc"
