// SPDX-License-Identifier: MIT
// driver_ref.h: the driver API as a value: a table of entry points and the object behind it.
//
//   DriverRef    two pointers, copied freely; both are borrowed. The simulated driver, the genuine driver and the gate each make one.
//                driver.MemAlloc(&p, n) calls the version that the macros of cuda.h choose and returns its CUresult unchanged.
//   DriverTable  one type-erased pointer per CallId; call_shape.h has the types. No pointer is null: an absent entry point returns
//                CUDA_ERROR_NOT_SUPPORTED. `modelled[id]` is false when the entry point can only give that answer.
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>

#include "faults/driver/call_id.h"

namespace cuaudit::driver {

using Entry = void (*)();

struct DriverTable {
  Entry entry[kCallCount];
  bool modelled[kCallCount];
};

struct DriverRef {
  const DriverTable* table = nullptr;
  void* self = nullptr;

#include "driver_methods.inc"
};

}  // namespace cuaudit::driver
