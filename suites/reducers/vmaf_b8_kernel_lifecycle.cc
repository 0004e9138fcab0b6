// SPDX-License-Identifier: MIT
// vmaf_b8_kernel_lifecycle.cc: a stream and two events for a kernel.
//
// Story   B8: the first event, the second or the pop fails; stream and events so far stay. It had been documented as intentional.
// Source  https://github.com/lusoris/vmaf, docs/adr/1336; written anew from the facts.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_b8_kernel_lifecycle {
namespace {

template <bool repaired>
struct KernelLifecycle {
  CUstream stream = nullptr;
  CUevent submitted = nullptr;
  CUevent finished = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = Enter(driver);
    if (code != CUDA_SUCCESS) return code;
    code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&submitted, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&finished, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) {
      code = Leave(driver);
      if (code == CUDA_SUCCESS) return code;
    }
    if (repaired) (void)Release(driver);
    LeaveForSure(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    return Inside(driver, [&] { return Release(driver); });
  }
  CUresult Release(DriverRef driver) {
    CUresult code = Destroy(driver, &finished);
    code = First(code, Destroy(driver, &submitted));
    return First(code, Destroy(driver, &stream));
  }
};

TEST(VmafB8, LosesStreamAndEventsSoFar) {
  ExpectVectors(Lifecycle::Of<KernelLifecycle<false>>("vmaf_b8").Prepare(MakeTheContext),
                {{"cuEventCreate#1=OUT_OF_MEMORY,refuse", "stream 1"},
                 {"cuEventCreate#2=OUT_OF_MEMORY,refuse", "event 1, stream 1"},
                 {"cuCtxPopCurrent#1=UNKNOWN,refuse", "event 2, stream 1"}});
}

TEST(VmafB8, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<KernelLifecycle<true>>("vmaf_b8_repaired").Prepare(MakeTheContext)); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b8_kernel_lifecycle
