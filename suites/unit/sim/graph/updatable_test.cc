// SPDX-License-Identifier: MIT
// Kernel nodes that device code may change: what their graphs may not do any more.
#include "suites/support/sim_world.h"

namespace cuaudit::sim::updatable_test {
namespace {

constexpr auto kUpdatable = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;

struct Nodes : Simulated {
  Nodes() {
    CUmodule module = nullptr;
    EXPECT_OK(d.ModuleLoadData(&module, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f()\n{\n ret;\n}\n"));
    EXPECT_OK(d.ModuleGetFunction(&function, module, "f"));
    EXPECT_OK(d.GraphCreate(&graph, 0));
    node = Add();
    other = Add();
  }
  CUgraphNode Add() {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = function;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    CUgraphNode added = nullptr;
    EXPECT_OK(d.GraphAddKernelNode(&added, graph, nullptr, 0, &kernel));
    return added;
  }
  CUresult Set(int wanted) {
    value = {};
    value.deviceUpdatableKernelNode.deviceUpdatable = wanted;
    return d.GraphKernelNodeSetAttribute(node, kUpdatable, &value);
  }
  CUresult Launch(CUstream stream) {
    CUlaunchAttribute attribute{};
    attribute.id = kUpdatable;
    attribute.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    const CUresult result = d.LaunchKernelEx(&config, function, nullptr, nullptr);
    value = attribute.value;
    return result;
  }
  CUfunction function = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode other = nullptr;
  CUkernelNodeAttrValue value{};
};

TEST(Updatable, OnceAndForGood) {
  Nodes n;
  EXPECT_EQ(n.Set(2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(n.Set(0));
  EXPECT_OK(n.d.GraphKernelNodeGetAttribute(n.node, kUpdatable, &n.value));
  EXPECT_EQ(n.value.deviceUpdatableKernelNode.deviceUpdatable, 0);
  EXPECT_OK(n.Set(1));
  const CUgraphDeviceNode handle = n.value.deviceUpdatableKernelNode.devNode;
  EXPECT_NE(handle, nullptr);
  EXPECT_OK(n.Set(1));
  EXPECT_EQ(n.value.deviceUpdatableKernelNode.devNode, handle);
  EXPECT_EQ(n.Set(0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(n.d.GraphKernelNodeGetAttribute(n.node, kUpdatable, &n.value));
  EXPECT_EQ(n.value.deviceUpdatableKernelNode.deviceUpdatable, 1);
}

TEST(Updatable, ItsGraphMayDoLess) {
  Nodes n;
  CUgraphExec first = nullptr;
  CUgraphExec second = nullptr;
  CUgraphExec plain = nullptr;
  CUgraph clone = nullptr;
  CUgraphExecUpdateResultInfo info{};
  EXPECT_OK(n.d.GraphClone(&clone, n.graph));
  EXPECT_OK(n.d.GraphInstantiateWithFlags(&plain, n.graph, 0));
  EXPECT_OK(n.d.GraphInstantiateWithFlags(&first, n.graph, 0));  // as often as one likes
  EXPECT_OK(n.d.GraphExecUpdate(plain, clone, &info));
  EXPECT_OK(n.d.GraphExecDestroy(first));
  EXPECT_OK(n.Set(1));
  EXPECT_EQ(n.d.GraphDestroyNode(n.node), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(n.d.GraphKernelNodeCopyAttributes(n.other, n.node), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(n.d.GraphKernelNodeCopyAttributes(n.node, n.other), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(n.d.GraphExecUpdate(plain, n.graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
  EXPECT_OK(n.d.GraphInstantiateWithFlags(&first, n.graph, 0));
  EXPECT_EQ(n.d.GraphInstantiateWithFlags(&second, n.graph, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(n.d.GraphExecUpdate(first, clone, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_OK(n.d.GraphUpload(first, nullptr));
  EXPECT_OK(n.d.GraphLaunch(first, nullptr));
  EXPECT_OK(n.d.CtxSynchronize(nullptr));
  EXPECT_OK(n.d.GraphExecDestroy(first));
  EXPECT_OK(n.d.GraphInstantiateWithFlags(&second, n.graph, 0));  // one after the other
}

TEST(Updatable, OnlyACapturedLaunchCanBe) {
  Nodes n;
  CUstream stream = nullptr;
  CUgraph captured = nullptr;
  EXPECT_OK(n.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(n.Launch(stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(n.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(n.Launch(stream));
  EXPECT_NE(n.value.deviceUpdatableKernelNode.devNode, nullptr);
  EXPECT_OK(n.d.StreamEndCapture(stream, &captured));
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  EXPECT_OK(n.d.GraphGetNodes(captured, &node, &count));
  EXPECT_EQ(n.d.GraphDestroyNode(node), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace cuaudit::sim::updatable_test
