// SPDX-License-Identifier: MIT
// own_context.h: lifecycles that make a context of their own and work in the primary one, too; and those that change a setting of what
// outlives them.
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

// Programs that change a setting of what outlives them, and their repaired twins.

// What a program does under the other setting.
inline CUresult UsesSomeMemory(DriverRef driver) {
  CUdeviceptr memory = 0;
  const CUresult code = driver.MemAlloc(&memory, 4096);
  return code == CUDA_SUCCESS ? driver.MemFree(memory) : code;
}

// Raises the limit of the current context. Wrong: the way back of a failure leaves it.
template <bool Wrong>
struct RaisesALimit {
  CUresult Init(DriverRef driver) {
    std::size_t before = 0;
    CUresult code = driver.CtxGetLimit(&before, CU_LIMIT_STACK_SIZE);
    if (code == CUDA_SUCCESS) code = driver.CtxSetLimit(CU_LIMIT_STACK_SIZE, before * 2);
    if (code != CUDA_SUCCESS) return code;
    code = UsesSomeMemory(driver);
    if (code != CUDA_SUCCESS && Wrong) return code;
    const CUresult back = driver.CtxSetLimit(CU_LIMIT_STACK_SIZE, before);
    return code != CUDA_SUCCESS ? code : back;
  }
};

// Captures of other threads do not forbid it to allocate. Right: a destructor puts the mode back.
template <bool Wrong>
struct RelaxesTheCaptureMode {
  CUresult Init(DriverRef driver) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult code = driver.ThreadExchangeStreamCaptureMode(&mode);
    if (code != CUDA_SUCCESS) return code;
    {
      const Back back = {driver, mode, &code};
      code = UsesSomeMemory(driver);
    }
    return code;
  }

 private:
  struct Back {
    DriverRef driver;
    CUstreamCaptureMode mode;
    CUresult* code;
    ~Back() {
      if (Wrong && *code != CUDA_SUCCESS) return;
      CUstreamCaptureMode former = mode;
      const CUresult back = driver.ThreadExchangeStreamCaptureMode(&former);
      if (*code == CUDA_SUCCESS) *code = back;
    }
  };
};

// Lets the default pool keep its memory for a while. Nobody asks for the threshold: it is 0 at first.
template <bool Wrong>
struct KeepsThePoolFull {
  CUresult Init(DriverRef driver) {
    CUmemoryPool pool = nullptr;
    cuuint64_t all = ~cuuint64_t{0};
    cuuint64_t none = 0;
    CUresult code = driver.DeviceGetDefaultMemPool(&pool, 0);
    if (code == CUDA_SUCCESS) code = driver.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
    if (code != CUDA_SUCCESS) return code;
    CUdeviceptr memory = 0;
    code = driver.MemAllocAsync(&memory, 4096, nullptr);
    if (code == CUDA_SUCCESS) code = driver.MemFreeAsync(memory, nullptr);
    if (code != CUDA_SUCCESS && Wrong) return code;
    const CUresult back = driver.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none);
    return code != CUDA_SUCCESS ? code : back;
  }
};

// Keeps what a stream of its caller reads in the cache for a while. The caller goes on with the stream.
template <bool Wrong>
struct KeepsAWindow {
  CUresult Init(DriverRef driver) {
    CUstream stream = nullptr;
    CUdeviceptr memory = 0;
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemAlloc(&memory, kBytes);
    if (code == CUDA_SUCCESS) {
      code = WithAWindow(driver, stream, memory);
      const CUresult cleared = driver.MemsetD8Async(memory, 0, kBytes, stream);
      const CUresult waited = driver.StreamSynchronize(stream);
      const CUresult freed = driver.MemFree(memory);
      for (const CUresult one : {cleared, waited, freed}) code = code != CUDA_SUCCESS ? code : one;
    }
    const CUresult ended = driver.StreamDestroy(stream);
    return code != CUDA_SUCCESS ? code : ended;
  }

 private:
  static constexpr std::size_t kBytes = 4096;
  [[gnu::noinline]] static CUresult WithAWindow(DriverRef driver, CUstream stream, CUdeviceptr memory) {
    CUstreamAttrValue value = {};
    value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(memory);
    value.accessPolicyWindow.num_bytes = kBytes;
    value.accessPolicyWindow.hitRatio = 1;
    value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
    CUresult code = driver.StreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
    if (code != CUDA_SUCCESS) return code;
    code = UsesSomeMemory(driver);
    if (code != CUDA_SUCCESS && Wrong) return code;
    value.accessPolicyWindow.num_bytes = 0;
    const CUresult back = driver.StreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
    return code != CUDA_SUCCESS ? code : back;
  }
};

// Right: configures the context for good, in two steps.
struct ConfiguresItsContext {
  CUresult Init(DriverRef driver) {
    std::size_t before = 0;
    CUresult code = driver.CtxGetLimit(&before, CU_LIMIT_STACK_SIZE);
    if (code == CUDA_SUCCESS) code = driver.CtxSetLimit(CU_LIMIT_STACK_SIZE, 4096);
    if (code == CUDA_SUCCESS) code = UsesSomeMemory(driver);
    if (code == CUDA_SUCCESS) code = driver.CtxSetLimit(CU_LIMIT_STACK_SIZE, 8192);
    return code == CUDA_SUCCESS ? driver.CtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1) : code;
  }
};

// Right: the context of its own ends with its limit.
struct RaisesTheLimitOfItsOwn {
  CUresult Init(DriverRef driver) {
    CUcontext own = nullptr;
    CUresult code = MakeContext(driver, &own);
    if (code != CUDA_SUCCESS) return code;
    code = RaisesALimit<true>().Init(driver);
    const CUresult ended = driver.CtxDestroy(own);
    return code != CUDA_SUCCESS ? code : ended;
  }
};

}  // namespace cuaudit::testing
