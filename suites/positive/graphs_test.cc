// SPDX-License-Identifier: MIT
// What graphs own, through the gate as a program would do it: their memory, and child graphs that were moved into them.
#define __CUDA_API_VERSION_INTERNAL
#include <utility>

#include "suites/support/cases/case.h"
#include "suites/support/gated_world.h"

namespace cuaudit::testing::graphs_test {
namespace {

using driver::CallId;
using ::testing::IsEmpty;

constexpr std::size_t kBytes = 4096;

CUDA_MEM_ALLOC_NODE_PARAMS OnDevice() {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  parameters.bytesize = kBytes;
  return parameters;
}

struct Program {
  faults::GatedWorld gated;
  driver::DriverRef d = gated.driver();
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;

  Program() {
    gated.Start();
    EXPECT_EQ(d.CtxGetCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(d.StreamCreate(&stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(d.GraphCreate(&graph, 0), CUDA_SUCCESS);
  }
  CUgraphNode Fill(CUgraph into, CUgraphNode* after, CUdeviceptr address) {
    CUgraphNode node = nullptr;
    const CUDA_MEMSET_NODE_PARAMS fill = {address, 0, 1, 1, kBytes, 1};
    EXPECT_EQ(d.GraphAddMemsetNode(&node, into, after, after == nullptr ? 0 : 1, &fill, context), CUDA_SUCCESS);
    return node;
  }
  void Launch() {
    CUgraphExec executable = nullptr;
    ASSERT_EQ(d.GraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(d.GraphLaunch(executable, stream), CUDA_SUCCESS);
    ASSERT_EQ(d.StreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(d.GraphExecDestroy(executable), CUDA_SUCCESS);
  }
  harness::Ledger End() {
    EXPECT_EQ(d.GraphDestroy(graph), CUDA_SUCCESS);
    EXPECT_EQ(d.StreamDestroy(stream), CUDA_SUCCESS);
    EXPECT_EQ(d.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    return harness::Fold(gated.Records());
  }
};

CUAUDIT_CASE(UnknownHandle, GraphMemoryFreedByTheProgram) {
  for (const bool in_order : {false, true}) {
    Program p;
    CUDA_MEM_ALLOC_NODE_PARAMS memory = OnDevice();
    CUgraphNode node = nullptr;
    ASSERT_EQ(p.d.GraphAddMemAllocNode(&node, p.graph, nullptr, 0, &memory), CUDA_SUCCESS);
    p.Fill(p.graph, &node, memory.dptr);
    p.Launch();
    EXPECT_EQ(in_order ? p.d.MemFreeAsync(memory.dptr, p.stream) : p.d.MemFree(memory.dptr), CUDA_SUCCESS);
    ExpectSilent(p.End());
  }
}

CUAUDIT_CASE(Leak, GraphMemoryThatTheGraphFrees) {
  for (const bool elsewhere : {false, true}) {
    Program p;
    CUDA_MEM_ALLOC_NODE_PARAMS memory = OnDevice();
    CUgraphNode node = nullptr;
    CUgraphNode last = nullptr;
    ASSERT_EQ(p.d.GraphAddMemAllocNode(&node, p.graph, nullptr, 0, &memory), CUDA_SUCCESS);
    CUgraphNode fill = p.Fill(p.graph, &node, memory.dptr);
    CUgraph other = nullptr;
    ASSERT_EQ(p.d.GraphCreate(&other, 0), CUDA_SUCCESS);
    CUgraph frees = elsewhere ? other : p.graph;
    ASSERT_EQ(p.d.GraphAddMemFreeNode(&last, frees, elsewhere ? nullptr : &fill, elsewhere ? 0 : 1, memory.dptr), CUDA_SUCCESS);
    for (int i = 0; i < 3; ++i) {  // by the same executable again and again
      p.Launch();
      std::swap(p.graph, other);
      p.Launch();
      std::swap(p.graph, other);
    }
    EXPECT_EQ(p.d.GraphDestroy(other), CUDA_SUCCESS);
    ExpectSilent(p.End());
  }
}

CUAUDIT_CASE(UseAfterRelease, GraphMemoryFreedAndLaunchedAgain) {
  Program p;
  CUDA_MEM_ALLOC_NODE_PARAMS memory = OnDevice();
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(p.d.GraphAddMemAllocNode(&node, p.graph, nullptr, 0, &memory), CUDA_SUCCESS);
  p.Fill(p.graph, &node, memory.dptr);
  ASSERT_EQ(p.d.GraphInstantiateWithFlags(&executable, p.graph, 0), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(p.d.GraphLaunch(executable, p.stream), CUDA_SUCCESS);
    EXPECT_EQ(p.d.MemFreeAsync(memory.dptr, p.stream), CUDA_SUCCESS);
  }
  EXPECT_EQ(p.d.GraphExecDestroy(executable), CUDA_SUCCESS);
  ExpectSilent(p.End());
}

CUAUDIT_CASE(Leak, GraphMemoryThatTheNextLaunchFrees) {
  Program p;
  CUDA_MEM_ALLOC_NODE_PARAMS memory = OnDevice();
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(p.d.GraphAddMemAllocNode(&node, p.graph, nullptr, 0, &memory), CUDA_SUCCESS);
  p.Fill(p.graph, &node, memory.dptr);
  ASSERT_EQ(p.d.GraphInstantiateWithFlags(&executable, p.graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(p.d.GraphLaunch(executable, p.stream), CUDA_SUCCESS);
  EXPECT_EQ(p.d.MemFreeAsync(memory.dptr, p.stream), CUDA_SUCCESS);
  EXPECT_EQ(p.d.GraphExecDestroy(executable), CUDA_SUCCESS);
  ExpectSilent(p.End());
}

// A launch that the plan refused made nothing; one that it denied made what nobody owes.
CUAUDIT_CASE(Leak, GraphMemoryOfALaunchThatWasToldToHaveFailed) {
  for (const bool forwarded : {false, true}) {
    Trace t;
    t.Call(CallId::GraphCreate).Out(0, 0x61);
    t.NodeContent(t.Call(CallId::GraphAddMemAllocNode).Out(0, 0x62).In(1, 0x61), faults::kMemoryNode, 0x10000, 0x1000);
    t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x64).In(1, 0x61);
    Step launch = t.Call(CallId::GraphLaunch).In(0, 0x64);
    if (forwarded) {
      launch.After();
      t.Free(0x10000);
    } else {
      launch.Refused();
    }
    t.Call(CallId::GraphExecDestroy).In(0, 0x64);
    t.Call(CallId::GraphDestroy).In(0, 0x61);
    EXPECT_THAT(Left(t.Fold()), IsEmpty());
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
}

CUAUDIT_CASE(UseAfterRelease, GraphMemoryWhereFreedMemoryLay) {
  for (const bool by_add_node : {false, true}) {
    Trace t;
    t.Alloc(0x10000, 0x1000);
    t.Free(0x10000);
    t.Call(CallId::GraphCreate).Out(0, 0x61);
    const Step node = t.Call(by_add_node ? CallId::GraphAddNode_v2 : CallId::GraphAddMemAllocNode).Out(0, 0x62).In(1, 0x61);
    t.NodeContent(node, faults::kMemoryNode, 0x10000, 0x1000);
    const Step kernel = t.Call(CallId::GraphAddKernelNode_v2).Out(0, 0x63).In(1, 0x61);
    t.Arguments(kernel, {0x10800});
    t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x64).In(1, 0x61);
    t.Call(CallId::GraphLaunch).In(0, 0x64).In(1, 0x65);
    t.Free(0x10000);
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
}

CUAUDIT_CASE(DoubleRelease, CapturedMemoryWhereFreedMemoryLay) {
  Trace t;
  t.CreateStream(0x5);
  t.Alloc(0x10000, 0x1000);
  t.Free(0x10000);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
  t.Call(CallId::MemAllocAsync).Out(0, 0x10000).In(1, 0x1000).In(2, 0x5);
  t.Call(CallId::StreamEndCapture).In(0, 0x5).Out(1, 0x61);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x64).In(1, 0x61);
  t.Call(CallId::GraphLaunch).In(0, 0x64).In(1, 0x5);
  t.Call(CallId::MemFreeAsync).In(0, 0x10000).In(1, 0x5);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(UseAfterRelease, ACapturedKernelWhoseMemoryGoesAfterItsLastLaunch) {
  Trace t;
  t.Alloc(0x10000, 0x1000);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
  t.Arguments(t.Call(CallId::LaunchKernel).In(8, 0x5), {0x10800});
  t.Call(CallId::StreamEndCapture).In(0, 0x5).Out(1, 0x61);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x64).In(1, 0x61);
  t.Call(CallId::GraphLaunch).In(0, 0x64).In(1, 0x5);
  t.Free(0x10000);
  t.Call(CallId::GraphExecDestroy).In(0, 0x64);
  t.Alloc(0x10000, 0x1000);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

// The event is also one that a node records in each launch.
CUAUDIT_CASE(Leak, MemoryOfAStreamThatWasForkedIntoACapture) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
  t.Call(CallId::EventRecord).In(0, 0xe).In(1, 0x5);
  t.Call(CallId::EventRecordWithFlags).In(0, 0xe).In(1, 0x5).In(2, CU_EVENT_RECORD_EXTERNAL);
  t.Call(CallId::StreamWaitEvent).In(0, 0x6).In(1, 0xe);
  t.Call(CallId::MemAllocAsync).Out(0, 0x10000).In(1, 0x1000).In(2, 0x6);
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
}

#if CUDA_VERSION >= 13000  // older toolkits know no ownership
CUgraphNodeParams Child(CUgraph graph, CUgraphChildGraphNodeOwnership ownership) {
  CUgraphNodeParams parameters = {};
  parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
  parameters.graph.graph = graph;
  parameters.graph.ownership = ownership;
  return parameters;
}

CUAUDIT_CASE(Leak, AChildGraphThatWasMoved) {
  Program p;
  CUgraph child = nullptr;
  ASSERT_EQ(p.d.GraphCreate(&child, 0), CUDA_SUCCESS);
  CUdeviceptr memory[2] = {};
  for (CUdeviceptr& one : memory) ASSERT_EQ(p.d.MemAlloc(&one, kBytes), CUDA_SUCCESS);
  CUgraphNode fill = p.Fill(child, nullptr, memory[0]);
  CUgraphNode node = nullptr;
  CUgraphNodeParams parameters = Child(child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
  ASSERT_EQ(p.d.GraphAddNode(&node, p.graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
  std::size_t count = 0;
  EXPECT_EQ(p.d.GraphGetNodes(child, nullptr, &count), CUDA_SUCCESS) << "the handle stays good";
  // Set through the child's own node, the parent no longer uses the first memory.
  const CUDA_MEMSET_NODE_PARAMS other = {memory[1], 0, 1, 1, kBytes, 1};
  ASSERT_EQ(p.d.GraphMemsetNodeSetParams(fill, &other), CUDA_SUCCESS);
  EXPECT_EQ(p.d.MemFree(memory[0]), CUDA_SUCCESS);
  p.Launch();
  EXPECT_EQ(p.d.MemFree(memory[1]), CUDA_SUCCESS);
  ExpectSilent(p.End());
}

// The node of a copy holds what the child held, and touches what it touched.
CUAUDIT_CASE(UseAfterRelease, AUserObjectThatACopiedChildGraphHolds) {
  const CaseRow row(driver::Kind::UserObject);
  Program p;
  CUgraph child = nullptr;
  CUuserObject object = nullptr;
  ASSERT_EQ(p.d.GraphCreate(&child, 0), CUDA_SUCCESS);
  ASSERT_EQ(p.d.UserObjectCreate(
                &object, nullptr, [](void*) {}, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_SUCCESS);
  ASSERT_EQ(p.d.GraphRetainUserObject(child, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
  CUgraphNode node = nullptr;
  CUgraphNodeParams parameters = Child(child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
  ASSERT_EQ(p.d.GraphAddNode(&node, p.graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
  EXPECT_NE(parameters.graph.graph, child) << "the driver tells the copy";
  EXPECT_EQ(p.d.GraphDestroy(child), CUDA_SUCCESS);
  EXPECT_EQ(p.d.UserObjectRetain(object, 1), CUDA_SUCCESS);
  EXPECT_EQ(p.d.UserObjectRelease(object, 1), CUDA_SUCCESS);
  ExpectSilent(p.End());
}
#endif

}  // namespace
}  // namespace cuaudit::testing::graphs_test
