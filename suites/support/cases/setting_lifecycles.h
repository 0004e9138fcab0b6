// SPDX-License-Identifier: MIT
// setting_lifecycles.h: programs that change a setting of what outlives them, and their repaired twins.
#pragma once

#include <cuaudit/lifecycle.h>

#include "suites/support/cases/own_context.h"

namespace cuaudit::testing {

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
