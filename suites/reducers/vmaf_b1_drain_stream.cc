// SPDX-License-Identifier: MIT
// vmaf_b1_drain_stream.cc: a stream that is made on demand.
//
// Story   B1: the context is popped right after the stream was made. When that fails, the handle is cleared and the error returned; the
//         stream stays for ever.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982, review round 26; written anew from the facts.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_b1_drain_stream {
namespace {

template <bool repaired>
struct DrainStream {
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = Enter(driver);
    if (code != CUDA_SUCCESS) return code;
    code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) {
      LeaveForSure(driver);
      return code;
    }
    code = Leave(driver);
    if (code == CUDA_SUCCESS) return code;
    if (repaired) (void)driver.StreamDestroy(stream);
    (void)Leave(driver);
    stream = nullptr;
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    return Inside(driver, [&] { return Destroy(driver, &stream); });
  }
};

TEST(VmafB1, LosesTheStreamWhenThePopFails) {
  ExpectVectors(Lifecycle::Of<DrainStream<false>>("vmaf_b1").Prepare(MakeTheContext), {{"cuCtxPopCurrent#1=UNKNOWN,refuse", "stream 1"}});
}

TEST(VmafB1, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<DrainStream<true>>("vmaf_b1_repaired").Prepare(MakeTheContext)); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b1_drain_stream
