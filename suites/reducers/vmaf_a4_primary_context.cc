// SPDX-License-Identifier: MIT
// vmaf_a4_primary_context.cc: a state that is initialised in the device's primary context.
//
// Story   A4: init retains the primary context, then makes it current, asks for the range of stream priorities, makes a stream and pops.
//         Each of these may fail, and the reference stays. State and table of functions, which stay too, are host memory:
//         preallocation.c.
// Source  https://github.com/Netflix/vmaf/issues/1300, docs/adr/0157, fix fd1b22c2; written anew from the facts.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_a4_primary_context {
namespace {

template <bool repaired>
struct State {
  CUcontext context = nullptr;
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.DevicePrimaryCtxRetain(&context, 0);
    if (code != CUDA_SUCCESS) {
      context = nullptr;
      return code;
    }
    code = MakeStream(driver);
    if (code == CUDA_SUCCESS || !repaired) return code;
    if (stream != nullptr) (void)Inside(driver, [&] { return Destroy(driver, &stream); });
    (void)driver.DevicePrimaryCtxRelease(0);
    return code;
  }
  CUresult MakeStream(DriverRef driver) {
    CUresult code = driver.CtxPushCurrent(context);
    if (code != CUDA_SUCCESS) return code;
    int least = 0;
    int greatest = 0;
    code = driver.CtxGetStreamPriorityRange(&least, &greatest);
    if (code == CUDA_SUCCESS) code = driver.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest);
    if (code != CUDA_SUCCESS) {
      stream = nullptr;
      LeaveForSure(driver);
      return code;
    }
    code = Leave(driver);
    if (code == CUDA_SUCCESS) return code;
    (void)driver.StreamDestroy(std::exchange(stream, nullptr));
    (void)Leave(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    if (stream != nullptr) {
      const CUresult code = Inside(driver, [&] { return Destroy(driver, &stream); });
      if (stream != nullptr) return code;
      if (code != CUDA_SUCCESS) return First(code, Release(driver));
    }
    return Release(driver);
  }
  CUresult Release(DriverRef driver) {
    return std::exchange(context, nullptr) == nullptr ? CUDA_SUCCESS : driver.DevicePrimaryCtxRelease(0);
  }
};

TEST(VmafA4, AFailingInitKeepsThePrimaryContext) {
  ExpectVectors(Lifecycle::Of<State<false>>("vmaf_a4").Prepare(MakeTheContext),
                {{"cuCtxPushCurrent#1=INVALID_CONTEXT,refuse", "primary_context 1"},
                 {"cuCtxGetStreamPriorityRange#1=INVALID_VALUE,refuse", "primary_context 1"},
                 {"cuStreamCreateWithPriority#1=OUT_OF_MEMORY,refuse", "primary_context 1"},
                 {"cuCtxPopCurrent#1=UNKNOWN,refuse", "primary_context 1"}});
}

TEST(VmafA4, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<State<true>>("vmaf_a4_repaired").Prepare(MakeTheContext)); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_a4_primary_context
