// SPDX-License-Identifier: MIT
// vmaf_b3_state_release.cc: releasing a state that owns a reference of the primary context, a stream, and the table by which it calls.
//
// Story   B3: the pop or the release of the context fails, and release returns: the table is never freed. The first repair freed it before
//         returning, and so made stream and context unreachable for anybody. The later policy keeps the handles, returns the error and lets
//         the caller try again.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982, review round 26, and 1336; written anew from the facts. The table is host memory,
//         which the C program early_returns.c shows; here it is what makes the handles reachable.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_b3_state_release {
namespace {

enum class Policy { FreesTheTable, KeepsForRetry };

template <Policy policy>
struct State {
  bool table = false;  // without it nothing can be called any more
  bool held = false;
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) {
    CUcontext context = nullptr;
    CUresult code = driver.DevicePrimaryCtxRetain(&context, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.CtxPushCurrent(context);
    if (code == CUDA_SUCCESS) {
      code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      if (code != CUDA_SUCCESS) {
        stream = nullptr;
        LeaveForSure(driver);
      } else if (code = Leave(driver); code != CUDA_SUCCESS) {
        (void)driver.StreamDestroy(std::exchange(stream, nullptr));
        (void)Leave(driver);
      }
    }
    table = held = code == CUDA_SUCCESS;
    if (code != CUDA_SUCCESS) (void)driver.DevicePrimaryCtxRelease(0);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    if (!table) return CUDA_SUCCESS;
    const CUresult code = Steps(driver);
    if (code == CUDA_SUCCESS || policy == Policy::FreesTheTable) table = false;
    return code;
  }
  CUresult Steps(DriverRef driver) {
    if (stream != nullptr) {
      const CUresult entered = Enter(driver);
      if (entered != CUDA_SUCCESS) return entered;
      const CUresult destroyed = Destroy(driver, &stream);
      const CUresult left = Leave(driver);
      if (left != CUDA_SUCCESS) {
        (void)Leave(driver);
        return left;
      }
      if (destroyed != CUDA_SUCCESS) return destroyed;
    }
    return std::exchange(held, false) ? driver.DevicePrimaryCtxRelease(0) : CUDA_SUCCESS;
  }
};

TEST(VmafB3, FreeingTheTableMakesTheRestUnreachable) {
  ExpectVectors(Lifecycle::Of<State<Policy::FreesTheTable>>("vmaf_b3").Prepare(MakeTheContext),
                {{"cuCtxPushCurrent#2=INVALID_CONTEXT,refuse", "primary_context 1, stream 1"},
                 {"cuStreamDestroy#1=INVALID_CONTEXT,refuse", "primary_context 1"},
                 {"cuCtxPopCurrent#2=UNKNOWN,refuse", "primary_context 1"}});
}

TEST(VmafB3, KeptForAnotherTryIsSilent) {
  ExpectSilent(Lifecycle::Of<State<Policy::KeepsForRetry>>("vmaf_b3_repaired").Prepare(MakeTheContext));
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b3_state_release
