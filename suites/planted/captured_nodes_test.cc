// SPDX-License-Identifier: MIT
// Nodes that a stream capture made touch memory that was released: launched, whoever captured them and however their addresses were told.
#define __CUDA_API_VERSION_INTERNAL
#include <functional>
#include <thread>

#include "suites/support/cases/capturing.h"

namespace cuaudit::testing::captured_nodes_test {
namespace {

using ::testing::ElementsAre;

// Captures what `make` queues, frees the memory, launches.
void ExpectUse(const std::function<void(const Capturing&, CUdeviceptr)>& make) {
  const Capturing p;
  const CUdeviceptr memory = p.Memory();
  p.Begin(p.stream);
  make(p, memory);
  CUgraphExec executable = p.Instantiate(p.End(p.stream));
  EXPECT_EQ(p.d.MemFree(memory), CUDA_SUCCESS);
  (void)p.d.GraphLaunch(executable, p.stream);
  EXPECT_THAT(Wrong(p.Fold()), ElementsAre("use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, ACapturedKernelOfEveryWayToLaunch) {
  ExpectUse([](const Capturing& p, CUdeviceptr memory) { p.Kernel(memory, p.stream); });
  ExpectUse([](const Capturing& p, CUdeviceptr memory) { p.KernelEx(memory, p.stream); });
  ExpectUse([](const Capturing& p, CUdeviceptr memory) {
    void* arguments[] = {&memory};
    EXPECT_EQ(p.d.LaunchCooperativeKernel(p.function, 1, 1, 1, 1, 1, 1, 0, p.stream, arguments), CUDA_SUCCESS);
  });
}

CUAUDIT_CASE(UseAfterRelease, ACapturedCopyOfEveryShape) {
  ExpectUse([](const Capturing& p, CUdeviceptr memory) {
    CUDA_MEMCPY3D_PEER copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = memory;
    copy.dstDevice = p.Memory();
    copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 16;
    copy.Height = copy.Depth = 1;
    EXPECT_EQ(p.d.CtxGetCurrent(&copy.srcContext), CUDA_SUCCESS);
    copy.dstContext = copy.srcContext;
    EXPECT_EQ(p.d.Memcpy3DPeerAsync(&copy, p.stream), CUDA_SUCCESS);
  });
  ExpectUse([](const Capturing& p, CUdeviceptr memory) { EXPECT_EQ(p.d.MemcpyDtoDAsync(p.Memory(), memory, 16, p.stream), CUDA_SUCCESS); });
}

CUAUDIT_CASE(UseAfterRelease, ACapturedBatchOfWrites) {
  ExpectUse([](const Capturing& p, CUdeviceptr memory) {
    CUstreamBatchMemOpParams write = {};
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = memory;
    EXPECT_EQ(p.d.StreamBatchMemOp(p.stream, 1, &write, 0), CUDA_SUCCESS);
  });
}

CUAUDIT_CASE(UseAfterRelease, AWorkerLaunchesIntoTheCaptureOfAnother) {
  ExpectUse([](const Capturing& p, CUdeviceptr memory) {
    CUcontext context = nullptr;
    EXPECT_EQ(p.d.CtxGetCurrent(&context), CUDA_SUCCESS);
    std::thread([&] {
      EXPECT_EQ(p.d.CtxSetCurrent(context), CUDA_SUCCESS);
      p.KernelEx(memory, p.stream);
    }).join();
  });
}

CUAUDIT_CASE(UseAfterRelease, AnArgumentThatACapturedNodeWasGivenLater) {
  for (const bool null_at_first : {false, true}) {
    const Capturing p;
    CUdeviceptr after = p.Memory();
    p.Begin(p.stream);
    p.Kernel(null_at_first ? 0 : p.Memory(), p.stream);
    CUgraph graph = p.End(p.stream);
    void* arguments[] = {&after};
    const CUDA_KERNEL_NODE_PARAMS node = p.With(arguments);
    EXPECT_EQ(p.d.GraphKernelNodeSetParams(p.OnlyNode(graph), &node), CUDA_SUCCESS);
    CUgraphExec executable = p.Instantiate(graph);
    EXPECT_EQ(p.d.MemFree(after), CUDA_SUCCESS);
    (void)p.d.GraphLaunch(executable, p.stream);
    EXPECT_THAT(Wrong(p.Fold()), ElementsAre("use_after_release device_memory")) << null_at_first;
  }
}

CUAUDIT_CASE(UseAfterRelease, ABatchOfWritesThatANodeWasGivenLater) {
  const Capturing p;
  const CUdeviceptr after = p.Memory();
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUstreamBatchMemOpParams write = {};
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch = p.Batch(&write, p.Memory());
  EXPECT_EQ(p.d.GraphCreate(&graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(p.d.GraphAddBatchMemOpNode(&node, graph, nullptr, 0, &batch), CUDA_SUCCESS);
  CUgraphExec executable = p.Instantiate(graph);
  batch = p.Batch(&write, after);
  EXPECT_EQ(p.d.GraphExecBatchMemOpNodeSetParams(executable, node, &batch), CUDA_SUCCESS);
  EXPECT_EQ(p.d.MemFree(after), CUDA_SUCCESS);
  (void)p.d.GraphLaunch(executable, p.stream);
  EXPECT_THAT(Wrong(p.Fold()), ElementsAre("use_after_release device_memory"));
}

}  // namespace
}  // namespace cuaudit::testing::captured_nodes_test
