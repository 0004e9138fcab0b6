// SPDX-License-Identifier: MIT
// own_context.h: a lifecycle in a context of its own that works in the primary one, too, with the helpers Enter and Leave.
//
// When its work fails, it takes its own context off by Leave before it destroys it. Wrong: the work calls Leave after Enter failed, and
// takes the context of its caller.
#pragma once

#include <cuaudit/lifecycle.h>

namespace cuaudit::testing {

enum class Leaving { ThenDestroys, ThenTearsDown, ThenWorksOn };

template <Leaving how, bool Wrong>
struct LeavesItsOwnContext {
  CUcontext primary = nullptr;
  CUcontext own = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.DevicePrimaryCtxRetain(&primary, 0);
    if (code != CUDA_SUCCESS) return code;
    code = Make(driver);
    if (code != CUDA_SUCCESS) {
      (void)driver.DevicePrimaryCtxRelease(0);
      return code;
    }
    code = Use(driver);
    if (code == CUDA_SUCCESS) return code;
    if (!Wrong) (void)Leave(driver);
    if (how == Leaving::ThenWorksOn && Enter(driver) == CUDA_SUCCESS) (void)Leave(driver);
    if (how == Leaving::ThenTearsDown) {
      (void)Teardown(driver);
    } else {
      (void)driver.CtxDestroy(own);
      (void)driver.DevicePrimaryCtxRelease(0);
    }
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult destroyed = driver.CtxDestroy(own);
    const CUresult released = driver.DevicePrimaryCtxRelease(0);
    return destroyed != CUDA_SUCCESS ? destroyed : released;
  }

 private:
  CUresult Make(DriverRef driver) {
#if CUDA_VERSION >= 13000
    return driver.CtxCreate(&own, nullptr, 0, 0);
#else
    return driver.CtxCreate(&own, 0, 0);
#endif
  }
  [[gnu::noinline]] CUresult Enter(DriverRef driver) { return driver.CtxPushCurrent(primary); }
  [[gnu::noinline]] CUresult Leave(DriverRef driver) {
    CUcontext left = nullptr;
    return driver.CtxPopCurrent(&left);
  }
  [[gnu::noinline]] CUresult Use(DriverRef driver) {
    CUresult code = Enter(driver);
    if (code != CUDA_SUCCESS) {
      if (Wrong) (void)Leave(driver);
      return code;
    }
    CUstream stream = nullptr;
    code = driver.StreamCreate(&stream, 0);
    if (code == CUDA_SUCCESS) code = driver.StreamDestroy(stream);
    const CUresult left = Leave(driver);
    return code != CUDA_SUCCESS ? code : left;
  }
};

}  // namespace cuaudit::testing
