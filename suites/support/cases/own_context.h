// SPDX-License-Identifier: MIT
// own_context.h: lifecycles that make a context of their own and work in the primary one, too.
#pragma once

#include <cuaudit/lifecycle.h>

namespace cuaudit::testing {

inline CUresult MakeContext(DriverRef driver, CUcontext* context) {
#if CUDA_VERSION >= 13000
  return driver.CtxCreate(context, nullptr, 0, 0);
#else
  return driver.CtxCreate(context, 0, 0);
#endif
}

// When its work fails, it takes its own context off by Leave before it destroys it. Wrong: the work calls Leave after Enter failed, and
// takes the context of its caller.
enum class Leaving { ThenDestroys, ThenTearsDown, ThenWorksOn };

template <Leaving how, bool Wrong>
struct LeavesItsOwnContext {
  CUcontext primary = nullptr;
  CUcontext own = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.DevicePrimaryCtxRetain(&primary, 0);
    if (code != CUDA_SUCCESS) return code;
    code = MakeContext(driver, &own);
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

// Over a push it makes a context and destroys it, without a pop of it. Wrong: when that fails, the push stays.
template <bool Wrong>
struct NestsAContext {
  CUresult Init(DriverRef driver) {
    CUcontext primary = nullptr;
    CUcontext left = nullptr;
    CUresult code = driver.DevicePrimaryCtxRetain(&primary, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.CtxPushCurrent(primary);
    if (code == CUDA_SUCCESS) {
      code = Nest(driver);
      if (code == CUDA_SUCCESS || !Wrong) {
        const CUresult popped = driver.CtxPopCurrent(&left);
        if (code == CUDA_SUCCESS) code = popped;
      }
    }
    const CUresult released = driver.DevicePrimaryCtxRelease(0);
    return code != CUDA_SUCCESS ? code : released;
  }

 private:
  [[gnu::noinline]] CUresult Nest(DriverRef driver) {
    CUcontext own = nullptr;
    CUstream stream = nullptr;
    CUresult code = MakeContext(driver, &own);
    if (code != CUDA_SUCCESS) return code;
    code = driver.StreamCreate(&stream, 0);
    if (code == CUDA_SUCCESS) code = driver.StreamDestroy(stream);
    const CUresult destroyed = driver.CtxDestroy(own);
    return code != CUDA_SUCCESS ? code : destroyed;
  }
};

}  // namespace cuaudit::testing
