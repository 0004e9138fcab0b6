// SPDX-License-Identifier: MIT
// cuda_core_c4_explicit_release.cc: a buffer that its user closes by hand while a graph that needs it lives.
//
// Story   C4: the graph holds the object around the buffer, and closing that object frees the memory under it. Repaired: the graph holds a
//         share of the memory itself; closing gives the user's share back, and the last share frees.
// Source  https://github.com/NVIDIA/cuda-python/issues/2039 and pull request 2041; written anew from the facts.
#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::cuda_core_c4_explicit_release {
namespace {

template <bool repaired>
struct ExplicitRelease {
  Drawing drawing;

  CUresult Init(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUresult code = drawing.Open(driver);
    if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
    if (code == CUDA_SUCCESS) code = drawing.Hold(driver, drawing.graph);
    if (code == CUDA_SUCCESS) code = drawing.Instantiate(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  CUresult CloseBuffer(DriverRef driver) { return repaired && drawing.drop != nullptr ? CUDA_SUCCESS : drawing.FreeBuffer(driver); }
  CUresult Work(DriverRef driver) {
    const CUresult code = CloseBuffer(driver);
    return code == CUDA_SUCCESS ? drawing.Launch(driver) : code;
  }
  CUresult Teardown(DriverRef driver) { return drawing.Close(driver); }
};

TEST(CudaCoreC4, ClosingTheBufferFreesItUnderTheGraph) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<ExplicitRelease<false>>("cuda_core_c4").WithCurrentContext(), kFourCycles)),
            "use_after_release device_memory");
}

TEST(CudaCoreC4, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<ExplicitRelease<true>>("cuda_core_c4_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c4_explicit_release
