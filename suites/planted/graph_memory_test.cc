// SPDX-License-Identifier: MIT
// Memory that graph nodes or captured calls allocate, through the gate as a program would do it and as literal records.
#define __CUDA_API_VERSION_INTERNAL
#include <string>

#include "suites/support/cases/case.h"
#include "suites/support/gated_world.h"

namespace cuaudit::testing::graph_memory_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kBytes = 4096;
constexpr const char* kOne = "stream_ordered_memory 1";

enum class By { Node, GenericNode, Capture };
constexpr By kWays[] = {By::Node, By::GenericNode, By::Capture};

// A program with one graph that allocates memory; it may free it in the same graph.
struct Program {
  faults::GatedWorld gated;
  driver::DriverRef d = gated.driver();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUdeviceptr address = 0;

  Program() {
    gated.Start();
    EXPECT_EQ(d.StreamCreate(&stream, 0), CUDA_SUCCESS);
  }
  CUgraphNodeParams OnDevice() {
    CUgraphNodeParams parameters = {};
    parameters.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    parameters.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.alloc.bytesize = kBytes;
    return parameters;
  }
  void Capture(bool frees) {
    ASSERT_EQ(d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    ASSERT_EQ(d.MemAllocAsync(&address, kBytes, stream), CUDA_SUCCESS);
    ASSERT_EQ(d.MemsetD8Async(address, 1, kBytes, stream), CUDA_SUCCESS);
    if (frees) {
      ASSERT_EQ(d.MemFreeAsync(address, stream), CUDA_SUCCESS);
    }
    ASSERT_EQ(d.StreamEndCapture(stream, &graph), CUDA_SUCCESS);
  }
  void AddGeneric(CUgraphNode* node, CUgraphNode* after, CUgraphNodeParams* parameters) {
#if CUDA_VERSION >= 13000
    ASSERT_EQ(d.GraphAddNode(node, graph, after, nullptr, after == nullptr ? 0 : 1, parameters), CUDA_SUCCESS);
#else
    ASSERT_EQ(d.GraphAddNode(node, graph, after, after == nullptr ? 0 : 1, parameters), CUDA_SUCCESS);
#endif
  }
  void AddNodes(bool generic, bool frees) {
    CUgraphNode node = nullptr;
    CUgraphNode last = nullptr;
    CUgraphNodeParams parameters = OnDevice();
    ASSERT_EQ(d.GraphCreate(&graph, 0), CUDA_SUCCESS);
    if (generic) {
      AddGeneric(&node, nullptr, &parameters);
    } else {
      CUDA_MEM_ALLOC_NODE_PARAMS memory = {};
      memory.poolProps = parameters.alloc.poolProps;
      memory.bytesize = kBytes;
      ASSERT_EQ(d.GraphAddMemAllocNode(&node, graph, nullptr, 0, &memory), CUDA_SUCCESS);
      parameters.alloc.dptr = memory.dptr;
    }
    address = parameters.alloc.dptr;
    if (frees && generic) {
      CUgraphNodeParams release = {};
      release.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
      release.free.dptr = address;
      AddGeneric(&last, &node, &release);
    } else if (frees) {
      ASSERT_EQ(d.GraphAddMemFreeNode(&last, graph, &node, 1, address), CUDA_SUCCESS);
    }
  }
  void Make(By how, bool frees, unsigned long long flags = 0) {
    if (how == By::Capture) {
      Capture(frees);
    } else {
      AddNodes(how == By::GenericNode, frees);
    }
    ASSERT_EQ(d.GraphInstantiateWithFlags(&executable, graph, flags), CUDA_SUCCESS);
  }
  CUresult Launch() {
    const CUresult result = d.GraphLaunch(executable, stream);
    EXPECT_EQ(d.StreamSynchronize(stream), CUDA_SUCCESS);
    return result;
  }
  // The end of graph and executable ends no memory.
  void Drop() {
    EXPECT_EQ(d.GraphExecDestroy(executable), CUDA_SUCCESS);
    EXPECT_EQ(d.GraphDestroy(graph), CUDA_SUCCESS);
  }
  harness::Ledger Seen() { return harness::Fold(gated.Records()); }
  harness::Ledger End() {
    EXPECT_EQ(d.StreamDestroy(stream), CUDA_SUCCESS);
    EXPECT_EQ(d.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    return Seen();
  }
};

CUAUDIT_CASE(Leak, GraphMemoryThatNobodyFrees) {
  for (const By how : kWays) {
    for (const bool frees : {false, true}) {
      Program p;
      p.Make(how, frees);
      ASSERT_EQ(p.Launch(), CUDA_SUCCESS);
      p.Drop();
      const harness::Ledger ledger = p.End();
      EXPECT_THAT(Wrong(ledger), IsEmpty());
      if (frees) {
        EXPECT_THAT(Left(ledger), IsEmpty()) << static_cast<int>(how);
        continue;
      }
      EXPECT_THAT(Left(ledger), ElementsAre(kOne)) << static_cast<int>(how);
      for (const harness::Object& object : ledger.objects) {
        if (object.kind != driver::Kind::StreamOrderedMemory) continue;
        EXPECT_EQ(object.acquired.call, static_cast<std::uint16_t>(CallId::GraphLaunch));
        EXPECT_EQ(object.bytes, kBytes);
      }
    }
  }
}

CUAUDIT_CASE(Leak, GraphMemoryOfEachOfTenGraphs) {
  Program p;
  for (int i = 0; i < 10; ++i) {
    p.Make(By::Node, false);
    ASSERT_EQ(p.Launch(), CUDA_SUCCESS);
    p.Drop();
  }
  std::size_t alive = 0;
  const harness::Ledger ledger = p.Seen();
  for (const harness::Object& object : ledger.objects) {
    alive += object.kind == driver::Kind::StreamOrderedMemory && object.state == harness::State::Live ? 1 : 0;
  }
  EXPECT_EQ(alive, 10U);
  Trace t;  // the rule as a trial shows it
  t.Call(CallId::GraphCreate).Out(0, 0x61);
  t.NodeContent(t.Call(CallId::GraphAddMemAllocNode).Out(0, 0x62).In(1, 0x61), faults::kMemoryNode, 0x10000, 0x1000);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x64).In(1, 0x61);
  t.Call(CallId::GraphLaunch).In(0, 0x64);
  t.Call(CallId::GraphExecDestroy).In(0, 0x64);
  t.Call(CallId::GraphDestroy).In(0, 0x61);
  EXPECT_THAT(Left(t.Fold()), ElementsAre(kOne));
}

CUAUDIT_CASE(DoubleRelease, GraphMemoryFreedTwice) {
  for (const By how : kWays) {
    Program p;
    p.Make(how, false);
    ASSERT_EQ(p.Launch(), CUDA_SUCCESS);
    EXPECT_EQ(p.d.MemFree(p.address), CUDA_SUCCESS);
    EXPECT_NE(p.d.MemFree(p.address), CUDA_SUCCESS);
    p.Drop();
    EXPECT_THAT(Wrong(p.End()), ElementsAre("double_release stream_ordered_memory"));
  }
}

CUAUDIT_CASE(UseAfterRelease, GraphMemoryThatAnotherGraphFilledLater) {
  for (const bool alive : {false, true}) {
    Program p;
    p.Make(By::Node, false);
    ASSERT_EQ(p.Launch(), CUDA_SUCCESS);
    CUcontext context = nullptr;
    EXPECT_EQ(p.d.CtxGetCurrent(&context), CUDA_SUCCESS);
    CUgraph other = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec user = nullptr;
    ASSERT_EQ(p.d.GraphCreate(&other, 0), CUDA_SUCCESS);
    const CUDA_MEMSET_NODE_PARAMS fill = {p.address, 0, 1, 1, kBytes, 1};
    ASSERT_EQ(p.d.GraphAddMemsetNode(&node, other, nullptr, 0, &fill, context), CUDA_SUCCESS);
    ASSERT_EQ(p.d.GraphInstantiateWithFlags(&user, other, 0), CUDA_SUCCESS);
    const auto release = [&] { EXPECT_EQ(p.d.MemFreeAsync(p.address, p.stream), CUDA_SUCCESS); };
    if (!alive) release();
    (void)p.d.GraphLaunch(user, p.stream);
    if (alive) release();
    EXPECT_EQ(p.d.GraphExecDestroy(user), CUDA_SUCCESS);
    EXPECT_EQ(p.d.GraphDestroy(other), CUDA_SUCCESS);
    p.Drop();
    const harness::Ledger ledger = p.End();
    if (alive) {
      EXPECT_THAT(Wrong(ledger), IsEmpty());
    } else {
      EXPECT_THAT(Wrong(ledger), ::testing::Contains("use_after_release stream_ordered_memory"));
    }
  }
}

}  // namespace
}  // namespace cuaudit::testing::graph_memory_test
