// SPDX-License-Identifier: MIT
// vmaf_b7_state_init.cc: both ways to initialise the state: in a context of the caller, and in the primary context.
//
// Story   B7: both make a stream and then pop the context; when the pop fails the stream stays. The variant that retains the primary
//         context gives it back, so that the lost stream dies with it once nobody else holds the context.
// Source  https://github.com/lusoris/vmaf, docs/adr/0960, A.1; written anew from the facts.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_b7_state_init {
namespace {

template <bool repaired, bool retains>
struct State {
  CUstream stream = nullptr;
  bool held = false;

  CUresult Init(DriverRef driver) {
    CUcontext context = TheContext();
    CUresult code = retains ? driver.DevicePrimaryCtxRetain(&context, 0) : CUDA_SUCCESS;
    if (code != CUDA_SUCCESS) return code;
    code = driver.CtxPushCurrent(context);
    if (code == CUDA_SUCCESS) {
      code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      if (code != CUDA_SUCCESS) {
        LeaveForSure(driver);
      } else {
        code = Leave(driver);
        if (code != CUDA_SUCCESS && repaired) (void)driver.StreamDestroy(stream);
        if (code != CUDA_SUCCESS) (void)Leave(driver);
      }
    }
    if (code != CUDA_SUCCESS && retains) (void)driver.DevicePrimaryCtxRelease(0);
    held = retains && code == CUDA_SUCCESS;
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult code = Inside(driver, [&] { return Destroy(driver, &stream); });
    if (stream != nullptr || !std::exchange(held, false)) return code;
    return First(code, driver.DevicePrimaryCtxRelease(0));
  }
};

TEST(VmafB7, LosesTheStreamInTheCallersContext) {
  ExpectVectors(Lifecycle::Of<State<false, false>>("vmaf_b7_given").Prepare(MakeTheContext),
                {{"cuCtxPopCurrent#1=UNKNOWN,refuse", "stream 1"}});
}

TEST(VmafB7, LosesTheStreamInThePrimaryContext) {
  ExpectVectors(Lifecycle::Of<State<false, true>>("vmaf_b7_primary").Prepare(MakeTheContext),
                {{"cuCtxPopCurrent#1=UNKNOWN,refuse", "stream 1"}});
}

TEST(VmafB7, RepairedIsSilent) {
  ExpectSilent(Lifecycle::Of<State<true, false>>("vmaf_b7_given_repaired").Prepare(MakeTheContext));
  ExpectSilent(Lifecycle::Of<State<true, true>>("vmaf_b7_primary_repaired").Prepare(MakeTheContext));
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b7_state_init
