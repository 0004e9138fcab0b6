// SPDX-License-Identifier: MIT
// cuda_core_c1_plain.cc: a kernel node, and the owner of the buffer that it was given the address of.
//
// Story   C1, first half: adding a kernel node copies raw argument values. The buffer's owner goes when its scope ends, and the graph runs.
//         Second half: the owner is attached to the graph without moving the reference, and the caller's own is never released: user object
//         and buffer stay after the graph and its executables are gone.
// Source  https://github.com/NVIDIA/cuda-python/issues/2039 and pull request 2041; written anew from the facts.
#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::cuda_core_c1_plain {
namespace {

enum class Form { Repaired, NotAttached, NeverLetGo };

template <Form form>
struct Plain {
  Drawing drawing;

  CUresult Init(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUresult code = drawing.Open(driver);
    if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
    if (code == CUDA_SUCCESS && form == Form::Repaired) code = drawing.Hold(driver, drawing.graph);
    if (code == CUDA_SUCCESS && form == Form::NeverLetGo) {
      CUuserObject object = nullptr;
      code = Attach(driver, drawing.graph, Drop::Next(), Holder::GraphAndCaller, &object);
      if (code == CUDA_SUCCESS) drawing.buffer = 0;  // the user object's from here on
    }
    if (code == CUDA_SUCCESS) code = drawing.Instantiate(driver);
    if (code == CUDA_SUCCESS && form == Form::NotAttached) code = drawing.FreeBuffer(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  CUresult Work(DriverRef driver) { return drawing.Launch(driver); }
  CUresult Teardown(DriverRef driver) { return drawing.Close(driver); }
};

TEST(CudaCoreC1, TheLaunchUsesWhatNobodyHolds) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Plain<Form::NotAttached>>("cuda_core_c1").WithCurrentContext(), kFourCycles)),
            "use_after_release device_memory");
}

TEST(CudaCoreC1, TheOwnerIsNeverLetGo) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Plain<Form::NeverLetGo>>("cuda_core_c1_never_let_go").WithCurrentContext(), kFourCycles)),
            "device_memory 3, user_object 3");
}

TEST(CudaCoreC1, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Plain<Form::Repaired>>("cuda_core_c1_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c1_plain
