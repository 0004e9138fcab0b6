// SPDX-License-Identifier: MIT
// Nodes that a stream capture made, changed or gone before their memory is.
#define __CUDA_API_VERSION_INTERNAL
#include "suites/planted/capturing.h"

namespace cuaudit::testing {
namespace {

using ::testing::IsEmpty;

struct OneKernel : Capturing {
  CUdeviceptr before = Memory();
  CUdeviceptr after = Memory();
  CUgraph graph = nullptr;
  void* arguments[1] = {&after};

  OneKernel() {
    Begin(stream);
    Kernel(before, stream);
    graph = End(stream);
  }
  void FreeAndLaunch(CUgraphExec executable) {
    EXPECT_EQ(d.MemFree(before), CUDA_SUCCESS);
    Launch(executable);
    EXPECT_THAT(Wrong(Fold()), IsEmpty());
  }
};

CUAUDIT_CASE(UseAfterRelease, ACapturedNodeOfAnExecutableIsGivenOtherMemory) {
  OneKernel p;
  CUgraphExec executable = p.Instantiate(p.graph);
  const CUDA_KERNEL_NODE_PARAMS node = p.With(p.arguments);
  EXPECT_EQ(p.d.GraphExecKernelNodeSetParams(executable, p.OnlyNode(p.graph), &node), CUDA_SUCCESS);
  p.FreeAndLaunch(executable);
}

CUAUDIT_CASE(UseAfterRelease, ACapturedNodeIsGivenOtherMemory) {
  OneKernel p;
  const CUDA_KERNEL_NODE_PARAMS node = p.With(p.arguments);
  EXPECT_EQ(p.d.GraphKernelNodeSetParams(p.OnlyNode(p.graph), &node), CUDA_SUCCESS);
  p.FreeAndLaunch(p.Instantiate(p.graph));
}

CUAUDIT_CASE(UseAfterRelease, ACapturedNodeIsDestroyed) {
  OneKernel p;
  EXPECT_EQ(p.d.GraphDestroyNode(p.OnlyNode(p.graph)), CUDA_SUCCESS);
  p.FreeAndLaunch(p.Instantiate(p.graph));
}

CUAUDIT_CASE(UseAfterRelease, AnotherCaptureOfTheSameThreadHasTheKernel) {
  const Capturing p;
  const CUdeviceptr first = p.Memory();
  const CUdeviceptr second = p.Memory();
  CUstream other = p.NewStream();
  p.Begin(p.stream);
  p.Begin(other);
  p.KernelEx(first, p.stream);
  p.KernelEx(second, other);
  CUgraph of_first = p.End(p.stream);
  CUgraphExec executable = p.Instantiate(p.End(other));
  EXPECT_EQ(p.d.GraphDestroy(of_first), CUDA_SUCCESS);
  EXPECT_EQ(p.d.MemFree(first), CUDA_SUCCESS);
  p.Launch(executable);
  EXPECT_THAT(Wrong(p.Fold()), IsEmpty());
}

CUAUDIT_CASE(UseAfterRelease, ACapturedFillIsGivenOtherMemory) {
  const Capturing p;
  const CUdeviceptr before = p.Memory();
  const CUdeviceptr after = p.Memory();
  p.Begin(p.stream);
  EXPECT_EQ(p.d.MemsetD8Async(before, 0, 16, p.stream), CUDA_SUCCESS);
  CUgraph graph = p.End(p.stream);
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = after;
  fill.elementSize = 1;
  fill.width = 16;
  fill.height = 1;
  EXPECT_EQ(p.d.GraphMemsetNodeSetParams(p.OnlyNode(graph), &fill), CUDA_SUCCESS);
  CUgraphExec executable = p.Instantiate(graph);
  EXPECT_EQ(p.d.MemFree(before), CUDA_SUCCESS);
  p.Launch(executable);
  EXPECT_THAT(Wrong(p.Fold()), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing
