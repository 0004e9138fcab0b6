// SPDX-License-Identifier: MIT
// Graphs and captures that outlive what they stand on.
#include "suites/support/sim_world.h"

namespace cuaudit::sim::gone_test {
namespace {

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

TEST(Gone, ANodeThatWasDestroyedAloneHasNoType) {
  Drawn drawn;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  EXPECT_OK(drawn.d.GraphDestroyNode(drawn.node));
  EXPECT_EQ(drawn.d.GraphNodeGetType(drawn.node, &type), CUDA_ERROR_INVALID_VALUE);
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

}  // namespace
}  // namespace cuaudit::sim::gone_test
