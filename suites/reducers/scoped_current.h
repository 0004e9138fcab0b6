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

}  // namespace cuaudit::reducers
