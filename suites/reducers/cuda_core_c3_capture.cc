// SPDX-License-Identifier: MIT
// cuda_core_c3_capture.cc: a kernel that is launched into a stream capture.
//
// Story   C3: a launch keeps its arguments alive until it is queued. Under a capture it is queued when the graph runs, later: the
//         captured node has no owner. Repaired: the captured graph is given the owner as a user object.
// Source  https://github.com/NVIDIA/cuda-python/issues/2039 and pull request 2041; written anew from the facts.
#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::cuda_core_c3_capture {
namespace {

template <bool repaired>
struct Capture {
  Drawing drawing;  // its graph is the captured one

  CUresult Init(DriverRef driver) {
    const CUresult code = Steps(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  CUresult Steps(DriverRef driver) {
    CUresult code = drawing.kernel.Load(driver);
    if (code == CUDA_SUCCESS) code = driver.StreamCreate(&drawing.stream, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&drawing.buffer, kBufferBytes);
    if (code == CUDA_SUCCESS) code = driver.StreamBeginCapture(drawing.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (code != CUDA_SUCCESS) return code;
    code = drawing.kernel.With(drawing.buffer, [&](const CUDA_KERNEL_NODE_PARAMS& one) {
      return driver.LaunchKernel(one.func, 1, 1, 1, 1, 1, 1, 0, drawing.stream, one.kernelParams, nullptr);
    });
    const CUresult ended = End(driver);
    code = Earlier(code, ended);
    if (code == CUDA_SUCCESS && repaired) code = drawing.Hold(driver, drawing.graph);
    if (code == CUDA_SUCCESS) code = drawing.Instantiate(driver);
    return code == CUDA_SUCCESS && !repaired ? drawing.FreeBuffer(driver) : code;
  }
  // A capture that stays open would take the stream with it: the end that was refused once is tried again.
  CUresult End(DriverRef driver) {
    const CUresult code = driver.StreamEndCapture(drawing.stream, &drawing.graph);
    if (code != CUDA_SUCCESS) (void)driver.StreamEndCapture(drawing.stream, &drawing.graph);
    return code;
  }
  CUresult Work(DriverRef driver) { return drawing.Launch(driver); }
  CUresult Teardown(DriverRef driver) { return drawing.Close(driver); }
};

TEST(CudaCoreC3, TheCapturedNodeHasNoOwner) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Capture<false>>("cuda_core_c3").WithCurrentContext(), kFourCycles)),
            "use_after_release device_memory");
}

TEST(CudaCoreC3, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Capture<true>>("cuda_core_c3_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c3_capture
