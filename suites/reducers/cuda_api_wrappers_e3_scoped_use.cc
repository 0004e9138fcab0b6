// SPDX-License-Identifier: MIT
// cuda_api_wrappers_e3_scoped_use.cc: an object that makes a device's primary context current for the length of a scope.
//
// Story   E3: what leaves the scope puts neither the caller's context back nor the reference of the primary context that it took: each
//         use leaves one entry on the stack and one reference, and the caller goes on in a context that is not its own.
// Source  https://github.com/eyalroz/cuda-api-wrappers; written anew from the facts of the fixes.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::cuda_api_wrappers_e3_scoped_use {
namespace {

enum class Leaves { Nothing, TheReference, TheStackEntry, Both };

template <Leaves leaves>
struct ScopedUse {
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) {
    CUcontext primary = nullptr;
    CUresult code = driver.DevicePrimaryCtxRetain(&primary, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.CtxPushCurrent(primary);
    const bool entered = code == CUDA_SUCCESS;
    if (entered) code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (entered && leaves != Leaves::TheStackEntry && leaves != Leaves::Both) code = First(code, LeftForSure(driver));
    if (leaves != Leaves::TheReference && leaves != Leaves::Both) code = First(code, driver.DevicePrimaryCtxRelease(0));
    if (code != CUDA_SUCCESS && stream != nullptr) (void)Destroy(driver, &stream);
    return code;
  }
  CUresult Teardown(DriverRef driver) { return Destroy(driver, &stream); }

  static CUresult LeftForSure(DriverRef driver) {
    const CUresult left = Leave(driver);
    if (left != CUDA_SUCCESS) (void)Leave(driver);
    return left;
  }
};

// The caller holds the primary context, too, and works in one of its own.
CUresult MakeTheCallers(DriverRef driver) {
  CUcontext own = nullptr;
  const CUresult code = MakeTheContext(driver);
  return code == CUDA_SUCCESS ? driver.CtxCreate(&own, nullptr, 0, 0) : code;
}

template <Leaves leaves>
Lifecycle Of(const char* name) {
  return Lifecycle::Of<ScopedUse<leaves>>(name).Prepare(MakeTheCallers);
}

constexpr CycleOptions kBehindTheFirst = {.warm_up = 1, .cycles = 3};

TEST(CudaApiWrappersE3, KeepsTheReference) {
  EXPECT_EQ(Lost(RunCycles(Of<Leaves::TheReference>("cuda_api_wrappers_e3_reference"), kBehindTheFirst)), "primary_context 3");
}

TEST(CudaApiWrappersE3, DoesNotPutTheCallersContextBack) {
  EXPECT_EQ(Lost(RunCycles(Of<Leaves::TheStackEntry>("cuda_api_wrappers_e3_current"), kBehindTheFirst)),
            "context_stack_unbalanced context_stack_entry");
  EXPECT_EQ(Lost(RunCycles(Of<Leaves::Both>("cuda_api_wrappers_e3_both"), kBehindTheFirst)),
            "primary_context 3, context_stack_unbalanced context_stack_entry");
}

TEST(CudaApiWrappersE3, RepairedIsSilent) { ExpectSilent(Of<Leaves::Nothing>("cuda_api_wrappers_e3_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_api_wrappers_e3_scoped_use
