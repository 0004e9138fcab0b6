// SPDX-License-Identifier: MIT
// cuda_core_c2_clone.cc: the clone of a graph outlives the original, and so must the buffer.
//
// Story   C2: the owner is held beside the original, by a list of the caller's that dies with it. Only user objects travel to the clone.
// Source  https://github.com/NVIDIA/cuda-python/issues/2039 and pull request 2041; written anew from the facts.
#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::cuda_core_c2_clone {
namespace {

template <bool repaired>
struct Clone {
  Drawing drawing;

  CUresult Init(DriverRef driver) {
    const CUresult code = Steps(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  CUresult Steps(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUgraph clone = nullptr;
    CUresult code = drawing.Open(driver);
    if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
    if (code == CUDA_SUCCESS && repaired) code = drawing.Hold(driver, drawing.graph);
    if (code == CUDA_SUCCESS) code = driver.GraphClone(&clone, drawing.graph);
    if (code != CUDA_SUCCESS) return code;
    code = driver.GraphDestroy(std::exchange(drawing.graph, clone));
    if (code != CUDA_SUCCESS) {
      drawing.drop = nullptr;  // the original holds on for ever
      return code;
    }
    if (!repaired) code = drawing.FreeBuffer(driver);
    return code == CUDA_SUCCESS ? drawing.Instantiate(driver) : code;
  }
  CUresult Work(DriverRef driver) { return drawing.Launch(driver); }
  CUresult Teardown(DriverRef driver) { return drawing.Close(driver); }
};

TEST(CudaCoreC2, TheCloneUsesWhatWentWithTheOriginal) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Clone<false>>("cuda_core_c2").WithCurrentContext(), kFourCycles)),
            "use_after_release device_memory");
}

TEST(CudaCoreC2, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Clone<true>>("cuda_core_c2_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c2_clone
