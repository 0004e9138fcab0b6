// SPDX-License-Identifier: MIT
// Nodes that a stream capture made, changed or gone before their memory is.
#define __CUDA_API_VERSION_INTERNAL
#include "suites/support/cases/capturing.h"

namespace cuaudit::testing::captured_nodes_test {
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

CUAUDIT_CASE(UseAfterRelease, ACapturedBatchOfWritesIsGivenOtherMemory) {
  const Capturing p;
  const CUdeviceptr before = p.Memory();
  CUstreamBatchMemOpParams write = {};
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch = p.Batch(&write, before);
  p.Begin(p.stream);
  EXPECT_EQ(p.d.StreamBatchMemOp(p.stream, 1, &write, 0), CUDA_SUCCESS);
  CUgraph graph = p.End(p.stream);
  CUgraphExec executable = p.Instantiate(graph);
  batch = p.Batch(&write, p.Memory());
  EXPECT_EQ(p.d.GraphExecBatchMemOpNodeSetParams(executable, p.OnlyNode(graph), &batch), CUDA_SUCCESS);
  EXPECT_EQ(p.d.MemFree(before), CUDA_SUCCESS);
  p.Launch(executable);
  EXPECT_THAT(Wrong(p.Fold()), IsEmpty());
}

// The driver shows the graph, and so the node, before its capture is over.
CUAUDIT_CASE(UseAfterRelease, ANodeIsGivenOtherMemoryWhileItsCaptureIsOpen) {
  const Capturing p;
  CUdeviceptr before = p.Memory();
  CUdeviceptr after = p.Memory();
  p.Begin(p.stream);
  p.Kernel(before, p.stream);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
#if CUDA_VERSION >= 13000
  EXPECT_EQ(p.d.StreamGetCaptureInfo(p.stream, &status, nullptr, &graph, nullptr, nullptr, nullptr), CUDA_SUCCESS);
#else
  EXPECT_EQ(p.d.StreamGetCaptureInfo(p.stream, &status, nullptr, &graph, nullptr, nullptr), CUDA_SUCCESS);
#endif
  void* arguments[] = {&after};
  const CUDA_KERNEL_NODE_PARAMS node = p.With(arguments);
  EXPECT_EQ(p.d.GraphKernelNodeSetParams(p.OnlyNode(graph), &node), CUDA_SUCCESS);
  CUgraphExec executable = p.Instantiate(p.End(p.stream));
  EXPECT_EQ(p.d.MemFree(before), CUDA_SUCCESS);
  p.Launch(executable);
  EXPECT_THAT(Wrong(p.Fold()), IsEmpty());
}

CUAUDIT_CASE(UseAfterRelease, WorkThatWasRefusedBecomesNoNode) {
  const Capturing p({"cuMemsetD8Async#1=INVALID_VALUE,refuse"});
  const CUdeviceptr memory = p.Memory();
  p.Begin(p.stream);
  EXPECT_EQ(p.d.MemsetD8Async(memory, 0, 16, p.stream), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec executable = p.Instantiate(p.End(p.stream));
  EXPECT_EQ(p.d.MemFree(memory), CUDA_SUCCESS);
  p.Launch(executable);
  EXPECT_THAT(Wrong(p.Fold()), IsEmpty());
}

CUAUDIT_CASE(UseAfterRelease, ACapturedNodeHasTheHandleOfOneThatIsGone) {
  Trace t;
  t.Call(driver::CallId::GraphCreate).Out(0, 0x61);
  t.Call(driver::CallId::GraphAddEmptyNode).Out(0, 0x62).In(1, 0x61);
  t.Call(driver::CallId::GraphDestroy).In(0, 0x61);
  t.Call(driver::CallId::StreamBeginCapture_v2).In(0, 0x5);
  const Step launch = t.Call(driver::CallId::LaunchKernel).In(8, 0x5);
  t.NodeContent(launch, faults::kCapturedNode, 0x62, 0x5);
  t.Call(driver::CallId::StreamEndCapture).In(0, 0x5).Out(1, 0x61);
  t.Call(driver::CallId::GraphKernelNodeSetParams_v2).In(0, 0x62);
  t.Call(driver::CallId::GraphDestroyNode).In(0, 0x62);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::captured_nodes_test
