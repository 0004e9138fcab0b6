// SPDX-License-Identifier: MIT
// driver_ref.h: the driver API as a value: a table of entry points and the object behind it.
//
//   DriverRef    two words, copied freely, borrows both. The simulated driver, the genuine driver and the gate each make one;
//                who holds one cannot know which it is. driver.MemAlloc(&p, n) calls the version that cuda.h's macros pick.
//   DriverTable  one type-erased pointer per CallId; call_shape.h gives each its type. Never null: absent entry points answer
//                CUDA_ERROR_NOT_SUPPORTED. `modelled[id]` says whether anything but that answer stands behind the entry.
//   Threads      as safe as the driver behind it; the reference itself is immutable.
//   Errors       CUresult exactly as the driver gave it; noexcept.
//   Faults       every method is one driver call of the same name.
//   Source       CUDA Driver API 13.0.
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>

#include <cstddef>

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
