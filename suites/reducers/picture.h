// SPDX-License-Identifier: MIT
// picture.h: a picture of three planes with a stream and two events of its own, as B2 allocates it and B4 fills a pool with it.
#pragma once

#include <utility>

#include "suites/reducers/scoped_current.h"

namespace cuaudit::reducers {

template <bool repaired>
struct Picture {
  static constexpr int kPlanes = 3;
  CUstream stream = nullptr;
  CUevent ready = nullptr;
  CUevent finished = nullptr;
  CUdeviceptr plane[kPlanes] = {};

  CUresult Allocate(DriverRef driver) {
    CUresult code = Enter(driver);
    if (code != CUDA_SUCCESS) return code;
    code = Make(driver);
    if (code != CUDA_SUCCESS) {
      if (repaired) (void)Release(driver);
      LeaveForSure(driver);
      return code;
    }
    code = Leave(driver);
    if (code == CUDA_SUCCESS) return code;
    if (repaired) (void)Release(driver);
    (void)Leave(driver);
    return code;
  }
  CUresult Free(DriverRef driver) {
    return Inside(driver, [&] { return Release(driver); });
  }
  // Streams, events and memory can be released while no context is current.
  CUresult Release(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (CUdeviceptr& one : plane) {
      if (one != 0) code = First(code, driver.MemFree(std::exchange(one, 0)));
    }
    code = First(code, Destroy(driver, &finished));
    code = First(code, Destroy(driver, &ready));
    return First(code, Destroy(driver, &stream));
  }

 private:
  CUresult Make(DriverRef driver) {
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&ready, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&finished, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) code = driver.EventRecord(ready, stream);
    for (CUdeviceptr& one : plane) {
      std::size_t pitch = 0;
      if (code == CUDA_SUCCESS) code = driver.MemAllocPitch(&one, &pitch, 256, 64, 4);
    }
    return code;
  }
};

}  // namespace cuaudit::reducers
