// SPDX-License-Identifier: MIT
// What graphs own and outlive: memory, captures, and nodes that device code may change.
#include <cstdint>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::graph_test {
namespace {

// Memory that graphs own: addresses, the books, the device's budget, and what ends it.

constexpr std::size_t kBytes = std::size_t{1} << 20;

class Owner : public Simulated {
 public:
  Owner() { EXPECT_OK(d.GraphCreate(&graph, 0)); }
  CUgraphNode Alloc() {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.bytesize = kBytes;
    CUgraphNode node = nullptr;
    EXPECT_OK(d.GraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters));
    address = parameters.dptr;
    return node;
  }
  void Instantiate(unsigned long long flags = 0) { EXPECT_OK(d.GraphInstantiateWithFlags(&executable, graph, flags)); }
  std::size_t Free() {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_OK(d.MemGetInfo(&free, &total));
    return free;
  }
  std::uint64_t Memory() const { return Live(driver::Kind::StreamOrderedMemory); }

  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUdeviceptr address = 0;
};

TEST(GraphMemory, LivesFromTheLaunchToTheFree) {
  Owner o;
  (void)o.Alloc();
  o.Instantiate();
  EXPECT_EQ(o.Memory(), 0U);
  EXPECT_EQ(o.d.MemsetD8(o.address, 1, kBytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  EXPECT_EQ(o.Memory(), 1U);
  EXPECT_OK(o.d.MemsetD8(o.address, 1, kBytes));
  EXPECT_OK(o.d.MemFreeAsync(o.address, nullptr));
  EXPECT_EQ(o.d.MemFreeAsync(o.address, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));  // before the free has run
  EXPECT_OK(o.d.CtxSynchronize(nullptr));
  EXPECT_EQ(o.Memory(), 1U);
  EXPECT_OK(o.d.MemFree(o.address));
  EXPECT_EQ(o.Memory(), 0U);
}

TEST(GraphMemory, ACopyInAGraphThatOutlivedItsMemoryLosesTheContext) {
  Owner o;
  (void)o.Alloc();
  o.Instantiate();
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  CUgraph other = nullptr;
  CUgraphExec fills = nullptr;
  CUgraphNode node = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = o.address;
  fill.elementSize = 1;
  fill.width = kBytes;
  fill.height = 1;
  EXPECT_OK(o.d.GraphCreate(&other, 0));
  EXPECT_OK(o.d.GraphAddMemsetNode(&node, other, nullptr, 0, &fill, o.context));
  EXPECT_OK(o.d.GraphInstantiateWithFlags(&fills, other, 0));
  EXPECT_OK(o.d.GraphLaunch(fills, nullptr));
  EXPECT_OK(o.d.CtxSynchronize(nullptr));
  EXPECT_OK(o.d.MemFree(o.address));
  EXPECT_OK(o.d.GraphLaunch(fills, nullptr));
  EXPECT_EQ(o.d.CtxSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(GraphMemory, TheDevicePaysUntilATrim) {
  Owner o;
  (void)o.Alloc();
  o.Instantiate();
  const std::size_t before = o.Free();
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  EXPECT_LT(o.Free(), before);
  EXPECT_OK(o.d.DeviceGraphMemTrim(0));
  EXPECT_LT(o.Free(), before);
  EXPECT_OK(o.d.MemFree(o.address));
  EXPECT_LT(o.Free(), before);
  EXPECT_OK(o.d.DeviceGraphMemTrim(0));
  EXPECT_EQ(o.Free(), before);
}

TEST(GraphMemory, OutlivesTheContextOfItsLaunch) {
  Owner o;
  (void)o.Alloc();
  o.Instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  EXPECT_OK(o.d.GraphLaunch(o.executable, nullptr));
  EXPECT_EQ(o.Memory(), 1U);
  EXPECT_OK(o.d.DevicePrimaryCtxReset(0));
  EXPECT_EQ(o.Memory(), 1U);
  CUcontext again = nullptr;
  EXPECT_OK(o.d.DevicePrimaryCtxRetain(&again, 0));
  EXPECT_OK(o.d.CtxSetCurrent(again));
  EXPECT_OK(o.d.MemFree(o.address));
  EXPECT_EQ(o.Memory(), 0U);
  EXPECT_OK(o.d.GraphExecDestroy(o.executable));
  EXPECT_OK(o.d.GraphDestroy(o.graph));
}

TEST(GraphMemory, CapturedAllocationsWorkLikeOrderedOnes) {
  Owner o;
  CUstream stream = nullptr;
  CUgraph captured = nullptr;
  CUgraphExec executable = nullptr;
  CUdeviceptr inside = 0;
  CUdeviceptr out = 0;
  EXPECT_OK(o.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(o.d.MemAlloc(&out, 4));
  EXPECT_OK(o.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_OK(o.d.MemAllocAsync(&inside, 4, stream));
  EXPECT_OK(o.d.MemsetD32Async(inside, 42, 1, stream));
  EXPECT_OK(o.d.MemcpyDtoDAsync(out, inside, 4, stream));
  EXPECT_OK(o.d.MemFreeAsync(inside, stream));
  EXPECT_OK(o.d.StreamEndCapture(stream, &captured));
  EXPECT_OK(o.d.GraphInstantiateWithFlags(&executable, captured, 0));
  EXPECT_OK(o.d.GraphDestroy(captured));
  for (int i = 0; i < 3; ++i) EXPECT_OK(o.d.GraphLaunch(executable, stream));
  EXPECT_OK(o.d.StreamSynchronize(stream));
  EXPECT_EQ(o.Memory(), 0U);
  unsigned value = 0;
  EXPECT_OK(o.d.MemcpyDtoH(&value, out, 4));
  EXPECT_EQ(value, 42U);
  EXPECT_OK(o.d.GraphExecDestroy(executable));
}

// Graphs and captures that outlive what they stand on.

constexpr const char* kImage = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f()\n{\n ret;\n}\n";

struct Drawn : Simulated {
  Drawn() {
    EXPECT_OK(d.ModuleLoadData(&module, kImage));
    CUfunction function = nullptr;
    EXPECT_OK(d.ModuleGetFunction(&function, module, "f"));
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = function;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    EXPECT_OK(d.GraphCreate(&graph, 0));
    EXPECT_OK(d.GraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  }
  CUresult Instantiate(CUgraph of) {
    CUDA_GRAPH_INSTANTIATE_PARAMS how{};
    const CUresult result = d.GraphInstantiateWithParams(&executable, of, &how);
    blamed = how.hErrNode_out;
    return result;
  }
  CUmodule module = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr, blamed = nullptr;
  CUgraphExec executable = nullptr;
};

TEST(Gone, AFunctionUnderANodeAlsoWithinAChild) {
  Drawn drawn;
  CUgraph outer = nullptr;
  CUgraphNode child = nullptr;
  EXPECT_OK(drawn.d.GraphCreate(&outer, 0));
  EXPECT_OK(drawn.d.GraphAddChildGraphNode(&child, outer, nullptr, 0, drawn.graph));
  EXPECT_OK(drawn.Instantiate(outer));
  EXPECT_OK(drawn.d.ModuleUnload(drawn.module));
  EXPECT_OK(drawn.d.GraphLaunch(drawn.executable, nullptr));  // what is instantiated keeps what it needs
  EXPECT_OK(drawn.d.CtxSynchronize(nullptr));
  EXPECT_EQ(drawn.Instantiate(drawn.graph), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(drawn.blamed, drawn.node);
  EXPECT_EQ(drawn.Instantiate(outer), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(drawn.blamed, child);
}

TEST(Gone, ANodesTypeIsKnownUntilItsNumberComesBack) {
  Drawn drawn;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  EXPECT_OK(drawn.d.GraphDestroy(drawn.graph));
  EXPECT_OK(drawn.d.GraphNodeGetType(drawn.node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
  for (int i = 0; i < 3000; ++i) {
    CUevent event = nullptr;
    EXPECT_OK(drawn.d.EventCreate(&event, 0));
    EXPECT_OK(drawn.d.EventDestroy(event));
  }
  EXPECT_EQ(drawn.d.GraphNodeGetType(drawn.node, &type), CUDA_ERROR_INVALID_VALUE);
}

TEST(Gone, ANodeThatWasDestroyedAloneHasATypeAndNoDependencies) {
  Drawn drawn;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUgraphNode before = nullptr;
  std::size_t count = 1;
  EXPECT_OK(drawn.d.GraphAddEmptyNode(&before, drawn.graph, nullptr, 0));
  EXPECT_OK(drawn.d.GraphAddDependencies(drawn.graph, &before, &drawn.node, nullptr, 1));
  EXPECT_OK(drawn.d.GraphDestroyNode(drawn.node));
  EXPECT_OK(drawn.d.GraphNodeGetType(drawn.node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
  EXPECT_OK(drawn.d.GraphNodeGetDependencies(drawn.node, nullptr, nullptr, &count));
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(drawn.d.GraphNodeGetDependencies(nullptr, nullptr, nullptr, &count), CUDA_ERROR_INVALID_VALUE);
}

// A second stream is forked into the capture of the first, and destroyed before the capture ends.
struct Forked : Simulated {
  Forked() {
    EXPECT_OK(d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(d.EventCreate(&e, 0));
    EXPECT_OK(d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_OK(d.EventRecord(e, s));
    EXPECT_OK(d.StreamWaitEvent(t, e, 0));
    EXPECT_OK(d.LaunchHostFunc(
        t, [](void*) {}, nullptr));
    EXPECT_OK(d.EventRecord(e, t));
  }
  CUstream s = nullptr, t = nullptr;
  CUevent e = nullptr;
  CUgraph graph = nullptr;
};

TEST(Gone, AForkedStreamWhoseWorkIsJoinedLater) {
  Forked forked;
  EXPECT_OK(forked.d.StreamDestroy(forked.t));
  EXPECT_OK(forked.d.StreamWaitEvent(forked.s, forked.e, 0));
  EXPECT_OK(forked.d.StreamEndCapture(forked.s, &forked.graph));
  EXPECT_NE(forked.graph, nullptr);
}

TEST(Gone, AForkedStreamWhoseWorkNobodyJoins) {
  Forked forked;
  EXPECT_OK(forked.d.StreamDestroy(forked.t));
  EXPECT_EQ(forked.d.StreamEndCapture(forked.s, &forked.graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(forked.graph, nullptr);
}

// Kernel nodes that device code may change: what their graphs may not do any more.

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
}  // namespace cuaudit::sim::graph_test
