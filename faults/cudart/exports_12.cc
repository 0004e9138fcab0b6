// SPDX-License-Identifier: MIT
// exports_12.cc: every function of libcudart.so.12 (12.4) but those that nvcc's generated code calls. Those whose ABI is 13.0's go to
// the same implementation; differences_12.def has the others.
#pragma GCC visibility push(default)
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#define CUDART_BY_LABEL
#include "faults/cudart/exports.h"

namespace cuaudit::cudart {
namespace {

// cudaPointerAttributes before 13.0 had no reserved words at its end.
struct PointerAttributes12 {
  enum cudaMemoryType type;
  int device;
  void* device_pointer;
  void* host_pointer;
};
static_assert(sizeof(PointerAttributes12) == 24);

}  // namespace

const int kRuntimeVersion = 12040;

}  // namespace cuaudit::cudart

#include "cudart_exports_12.inc"

CUDART_DEFINE(cudaError_t, cudaPointerGetAttributes, (void* out, const void* pointer)) {
  using namespace cuaudit::cudart;
  return Run<Need::context, false>([&](DriverRef driver) noexcept {
    if (out == nullptr) return cudaErrorInvalidValue;
    cudaPointerAttributes attributes;
    const cudaError_t error = PointerGetAttributes(driver, &attributes, pointer);
    if (error != cudaSuccess) return error;
    *static_cast<PointerAttributes12*>(out) = {attributes.type, attributes.device, attributes.devicePointer, attributes.hostPointer};
    return cudaSuccess;
  });
}
