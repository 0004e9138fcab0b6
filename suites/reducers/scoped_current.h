// SPDX-License-Identifier: MIT
// scoped_current.h: what the reducers of one family share: a context that is made beforehand and is current only inside of each step.
#pragma once

#include <utility>

#include "cuaudit/lifecycle.h"

namespace cuaudit::reducers {

// The caller's: made by Prepare, never current between steps.
inline CUcontext& TheContext() {
  static CUcontext context = nullptr;
  return context;
}

inline CUresult MakeTheContext(DriverRef driver) {
  const CUresult code = driver.Init(0);
  return code == CUDA_SUCCESS ? driver.DevicePrimaryCtxRetain(&TheContext(), 0) : code;
}

inline CUresult Enter(DriverRef driver) { return driver.CtxPushCurrent(TheContext()); }

inline CUresult Leave(DriverRef driver) {
  CUcontext popped = nullptr;
  return driver.CtxPopCurrent(&popped);
}

// For unwinding: a pop that was refused once is tried again, so that the caller's context stack is restored.
inline void LeaveForSure(DriverRef driver) {
  if (Leave(driver) != CUDA_SUCCESS) (void)Leave(driver);
}

inline CUresult First(CUresult one, CUresult two) { return one != CUDA_SUCCESS ? one : two; }

// A teardown that enters, releases and leaves. When it cannot enter it keeps everything and says so: its caller tries again.
template <typename Release>
CUresult Inside(DriverRef driver, const Release& release) {
  const CUresult entered = Enter(driver);
  if (entered != CUDA_SUCCESS) return entered;
  const CUresult code = release();
  const CUresult left = Leave(driver);
  if (left != CUDA_SUCCESS) (void)Leave(driver);
  return First(code, left);
}

// Releases each handle once, whatever the answer: after a refused release it is unknown whether the object is gone.
inline CUresult Destroy(DriverRef driver, CUstream* stream) {
  return *stream == nullptr ? CUDA_SUCCESS : driver.StreamDestroy(std::exchange(*stream, nullptr));
}
inline CUresult Destroy(DriverRef driver, CUevent* event) {
  return *event == nullptr ? CUDA_SUCCESS : driver.EventDestroy(std::exchange(*event, nullptr));
}

// A picture of three planes with a stream and two events of its own, as B2 allocates it and B4 fills a pool with it.
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
