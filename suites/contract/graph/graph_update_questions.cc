// SPDX-License-Identifier: MIT
#include <utility>

#include "suites/contract/graph/graph_furniture.h"

namespace cuaudit::contract::graph_update_questions {
namespace {

// The result of updating the first graph's executable with the second graph, and whether nodes are named.
void Update(Asker& a, const Sketch& s, const Sketch& with, CUgraphNode culprit = nullptr) {
  CUgraphExecUpdateResultInfo info{};
  a(a.d.GraphExecUpdate(s.x, with.g, &info), info.result);
  if (culprit != nullptr) {
    a.Value(info.errorNode == culprit);
  } else {
    a.Value(info.errorNode == nullptr);
  }
}

struct Gate {
  volatile int open = 0;
};
// Bounded, so that a driver which waits for it cannot hang.
void WaitForGate(void* argument) {
  volatile int turns = 0;
  while (static_cast<Gate*>(argument)->open == 0 && turns < 1000000000) turns = turns + 1;
}

CUfunction FunctionOf(Asker& a, const char* name) {
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  a.Prepare(a.d.ModuleLoadData(&m, kPtx));
  a.Prepare(a.d.ModuleGetFunction(&f, m, name));
  return f;
}

}  // namespace

void List(Questions& ask) {
  ask.Plain("graph_update.value", "SUCCESS 0 1 SUCCESS 9", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 64);
    Sketch s(a);
    Sketch t(a);
    (void)s.Fill(p, 5, 64, a.context);
    (void)t.Fill(p, 9, 64, a.context);
    s.Instantiate();
    Update(a, s, t);
    a.Prepare(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    a.ByteAt(p);
    (void)a.d.MemFree(p);
  });
  ask.Fresh("graph_update.launched_before", "SUCCESS x3 5 9", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 64);
    Sketch s(a);
    const CUgraphNode n = s.Fill(p, 5, 64, a.context);
    s.Instantiate();
    static Gate gate;
    const CUstream stream = a.StreamCreate();
    a.Prepare(a.d.LaunchHostFunc(stream, WaitForGate, &gate));
    a(a.d.GraphLaunch(s.x, stream));
    const CUDA_MEMSET_NODE_PARAMS fill = Sketch::FillOf(p, 9, 64);
    a(a.d.GraphExecMemsetNodeSetParams(s.x, n, &fill, a.context));
    gate.open = 1;
    a(a.d.StreamSynchronize(stream));
    a.ByteAt(p);
    a.Prepare(a.d.GraphLaunch(s.x, stream));
    a.Prepare(a.d.StreamSynchronize(stream));
    a.ByteAt(p);
  });
  ask.Plain("graph_update.fewer_nodes", "GRAPH_EXEC_UPDATE_FAILURE 2 1", [](Ready& a, Sketch& s, Sketch& t) {
    (void)s.Empty();
    (void)s.Empty();
    (void)t.Empty();
    s.Instantiate();
    Update(a, s, t);
  });
  ask.Plain("graph_update.other_edges", "GRAPH_EXEC_UPDATE_FAILURE 2", [](Ready& a, Sketch& s, Sketch& t) {
    const CUgraphNode n = s.Host(), o = s.Host();
    a.Prepare(a.d.GraphAddDependencies(s.g, &n, &o, nullptr, 1));
    (void)t.Host();
    (void)t.Host();
    s.Instantiate();
    CUgraphExecUpdateResultInfo info{};
    a(a.d.GraphExecUpdate(s.x, t.g, &info), info.result);
  });
  ask.Plain("graph_update.other_type", "GRAPH_EXEC_UPDATE_FAILURE 3 1", [](Ready& a, Sketch& s, Sketch& t) {
    (void)s.Empty();
    const CUgraphNode n = t.Host();
    s.Instantiate();
    Update(a, s, t, n);
  });
  ask.Plain("graph_update.other_function", "SUCCESS 0 1", [](Ready& a, Sketch& s, Sketch& t) {
    CUdeviceptr p = 0;
    unsigned count = 0;
    void* parameters[] = {&p, &count};
    (void)s.Kernel(FunctionOf(a, "plain"));
    (void)t.Kernel(FunctionOf(a, "fill"), parameters);
    s.Instantiate();
    Update(a, s, t);
  });
  ask.Fresh("graph_update.function_of_another_context", "GRAPH_EXEC_UPDATE_FAILURE 7 1", [](Ready& a, Sketch& s, Sketch& t) {
    (void)s.Kernel(FunctionOf(a, "plain"));
    CUcontext other = a.CtxCreate();
    const CUgraphNode n = t.Kernel(FunctionOf(a, "plain"));
    a.Prepare(a.d.CtxPopCurrent(&other));
    s.Instantiate();
    Update(a, s, t, n);
  });
  ask.Plain("graph_update.copy_direction", "GRAPH_EXEC_UPDATE_FAILURE 5 1", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 64);
    static char host[64];
    Sketch s(a);
    Sketch t(a);
    CUDA_MEMCPY3D copy = Sketch::CopyOf(p + 32, p, 32);
    CUgraphNode n = nullptr;
    a.Prepare(a.d.GraphAddMemcpyNode(&n, s.g, nullptr, 0, &copy, a.context));
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    a.Prepare(a.d.GraphAddMemcpyNode(&n, t.g, nullptr, 0, &copy, a.context));
    s.Instantiate();
    Update(a, s, t, n);
    (void)a.d.MemFree(p);
  });
  ask.Plain("graph_update.fill_shape", "SUCCESS 0 1 GRAPH_EXEC_UPDATE_FAILURE 5 1", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 4096);
    Sketch s(a);
    Sketch t(a);
    Sketch u(a);
    (void)s.Fill(p, 5, 64, a.context);
    (void)t.Fill(p, 5, 32, a.context);
    const CUgraphNode n = u.Fill(p, 5, 64, a.context, 4);
    s.Instantiate();
    Update(a, s, t);
    Update(a, s, u, n);
    (void)a.d.MemFree(p);
  });
  ask.Plain("graph_update.child_inside", "SUCCESS 0 1 GRAPH_EXEC_UPDATE_FAILURE 2", [](Ready& a, Sketch& same, Sketch& bigger) {
    Sketch s(a);
    const Sketch t(a);
    const Sketch u(a);
    (void)same.Host();
    (void)bigger.Host();
    (void)bigger.Host();
    CUgraphNode n = nullptr;
    a.Prepare(a.d.GraphAddChildGraphNode(&n, s.g, nullptr, 0, same.g));
    a.Prepare(a.d.GraphAddChildGraphNode(&n, t.g, nullptr, 0, same.g));
    a.Prepare(a.d.GraphAddChildGraphNode(&n, u.g, nullptr, 0, bigger.g));
    s.Instantiate();
    Update(a, s, t);
    CUgraphExecUpdateResultInfo info{};
    a(a.d.GraphExecUpdate(s.x, u.g, &info), info.result);
  });
  ask.Risky("graph_update.null", "INVALID_VALUE INVALID_VALUE SUCCESS", [](Ready& a, Sketch& s) {
    (void)s.Empty();
    s.Instantiate();
    CUgraphExecUpdateResultInfo info{};
    a(a.d.GraphExecUpdate(nullptr, s.g, &info));
    a(a.d.GraphExecUpdate(s.x, nullptr, &info));
    a(a.d.GraphExecUpdate(s.x, s.g, nullptr));
  });
  ask.Plain("graph_update.cooperative", "GRAPH_EXEC_UPDATE_FAILURE 8 1", [](Ready& a, Sketch& s, Sketch& t) {
    const CUfunction f = FunctionOf(a, "plain");
    (void)s.Kernel(f);
    const CUgraphNode n = t.Kernel(f);
    CUkernelNodeAttrValue value{};
    value.cooperative = 1;
    a.Prepare(a.d.GraphKernelNodeSetAttribute(n, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value));
    s.Instantiate();
    Update(a, s, t, n);
  });
  // Whose destructors have run: of the graph that was instantiated and of the one that it was updated with, after the update, without
  // both graphs, without the executable.
  ask.Fresh("graph_update.user_objects", "SUCCESS 0 0 1 0 1 1", [](Ready& a) {
    static int died[2];
    died[0] = died[1] = 0;
    const auto tell = [&a] {
      // A genuine driver calls destructors from a thread of its own.
      for (int i = 0; i < 20000 && (died[0] == 0 || died[1] == 0); ++i) (void)a.d.CtxSynchronize(nullptr);
      a.Value(died[0]);
      a.Value(died[1]);
    };
    Sketch s(a);
    Sketch t(a);
    (void)s.Empty();
    (void)t.Empty();
    Sketch* const sketches[] = {&s, &t};
    for (int i = 0; i < 2; ++i) {
      CUuserObject u = nullptr;
      a.Prepare(a.d.UserObjectCreate(&u, &died[i], Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
      a.Prepare(a.d.GraphRetainUserObject(sketches[i]->g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    }
    s.Instantiate();
    a(a.d.GraphExecUpdate(s.x, t.g, kIgnored));
    tell();
    for (Sketch* const sketch : sketches) a.Prepare(a.d.GraphDestroy(std::exchange(sketch->g, nullptr)));
    tell();
    a.Prepare(a.d.GraphExecDestroy(std::exchange(s.x, nullptr)));
    tell();
  });
  ask.Risky("graph_exec_set.wrong_node", "INVALID_VALUE x3", [](Ready& a, Sketch& s, Sketch& t) {
    const CUgraphNode e = s.Empty();
    (void)s.Host();
    const CUgraphNode other = t.Host();
    s.Instantiate();
    const CUDA_HOST_NODE_PARAMS host{Nothing, nullptr};
    a(a.d.GraphExecHostNodeSetParams(s.x, e, &host));
    a(a.d.GraphExecHostNodeSetParams(s.x, other, &host));
    a(a.d.GraphExecHostNodeSetParams(s.x, nullptr, &host));
  });
  ask.Fresh("graph_exec_set.copy", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 4096);
    static char host[64];
    Sketch s(a);
    CUDA_MEMCPY3D copy = Sketch::CopyOf(p + 1024, p, 32);
    CUgraphNode n = nullptr;
    a.Prepare(a.d.GraphAddMemcpyNode(&n, s.g, nullptr, 0, &copy, a.context));
    s.Instantiate();
    copy.WidthInBytes = 64;
    a(a.d.GraphExecMemcpyNodeSetParams(s.x, n, &copy, a.context));
    a(a.d.GraphExecMemcpyNodeSetParams(s.x, n, &copy, nullptr));
    copy.Height = 2;
    copy.srcPitch = copy.dstPitch = 128;
    a(a.d.GraphExecMemcpyNodeSetParams(s.x, n, &copy, a.context));
    copy = Sketch::CopyOf(p + 1024, p, 32);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    a(a.d.GraphExecMemcpyNodeSetParams(s.x, n, &copy, a.context));
  });
  ask.Fresh("graph_exec_set.fill", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE SUCCESS", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 4096);
    Sketch s(a);
    const CUgraphNode n = s.Fill(p, 1, 64, a.context);
    s.Instantiate();
    CUDA_MEMSET_NODE_PARAMS fill = Sketch::FillOf(p + 64, 2, 64);
    a(a.d.GraphExecMemsetNodeSetParams(s.x, n, &fill, a.context));
    fill.width = 32;
    a(a.d.GraphExecMemsetNodeSetParams(s.x, n, &fill, a.context));
    fill.width = 0;
    a(a.d.GraphExecMemsetNodeSetParams(s.x, n, &fill, a.context));
    fill = Sketch::FillOf(p, 2, 64, 2);
    a(a.d.GraphExecMemsetNodeSetParams(s.x, n, &fill, a.context));
    fill = Sketch::FillOf(p, 2, 64);
    const CUcontext other = a.CtxCreate();
    a(a.d.GraphExecMemsetNodeSetParams(s.x, n, &fill, other));
  });
  ask.Fresh("graph_exec_set.kernel", "SUCCESS INVALID_VALUE INVALID_VALUE", [](Ready& a, Sketch& s) {
    const CUgraphNode n = s.Kernel(FunctionOf(a, "plain"));
    s.Instantiate();
    CUdeviceptr p = 0;
    unsigned count = 0;
    void* parameters[] = {&p, &count};
    CUDA_KERNEL_NODE_PARAMS kernel = Sketch::KernelOf(FunctionOf(a, "fill"), parameters);
    a(a.d.GraphExecKernelNodeSetParams(s.x, n, &kernel));
    kernel.blockDimX = 4096;
    a(a.d.GraphExecKernelNodeSetParams(s.x, n, &kernel));
    a.CtxCreate();
    kernel = Sketch::KernelOf(FunctionOf(a, "plain"));
    a(a.d.GraphExecKernelNodeSetParams(s.x, n, &kernel));
  });
  ask.Plain("graph_exec_set.child", "SUCCESS GRAPH_EXEC_UPDATE_FAILURE SUCCESS 1", [](Ready& a) {
    static int ran = 0;
    ran = 0;
    Sketch inner(a);
    Sketch same(a);
    Sketch bigger(a);
    Sketch s(a);
    (void)inner.Host();
    (void)same.Host(Bump, &ran);
    (void)bigger.Host();
    (void)bigger.Host();
    CUgraphNode n = nullptr;
    a.Prepare(a.d.GraphAddChildGraphNode(&n, s.g, nullptr, 0, inner.g));
    s.Instantiate();
    a(a.d.GraphExecChildGraphNodeSetParams(s.x, n, same.g));
    a(a.d.GraphExecChildGraphNodeSetParams(s.x, n, bigger.g));
    a.Prepare(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    a.Value(ran);
  });
  ask.Risky("graph_exec_set.destroyed_node", "SUCCESS INVALID_VALUE SUCCESS", [](Ready& a, Sketch& s) {
    const CUgraphNode n = s.Host();
    s.Instantiate();
    a(a.d.GraphDestroyNode(n));
    const CUDA_HOST_NODE_PARAMS host{Nothing, nullptr};
    a(a.d.GraphExecHostNodeSetParams(s.x, n, &host));
    a(a.d.GraphLaunch(s.x, nullptr));
  });
  ask.Plain("graph_enabled.kinds", "SUCCESS SUCCESS 0 INVALID_VALUE x4", [](Ready& a, Sketch& inner, Sketch& s) {
    const CUgraphNode kernel = s.Kernel(FunctionOf(a, "plain")), host = s.Host(), empty = s.Empty();
    CUgraphNode child = nullptr;
    a.Prepare(a.d.GraphAddChildGraphNode(&child, s.g, nullptr, 0, inner.g));
    s.Instantiate();
    unsigned enabled = 7;
    a(a.d.GraphNodeSetEnabled(s.x, kernel, 0));
    a(a.d.GraphNodeGetEnabled(s.x, kernel, &enabled), enabled);
    a(a.d.GraphNodeSetEnabled(s.x, host, 0));
    a(a.d.GraphNodeSetEnabled(s.x, empty, 0));
    a(a.d.GraphNodeSetEnabled(s.x, child, 0));
    a(a.d.GraphNodeGetEnabled(s.x, host, &enabled));
  });
  ask.Plain("graph_enabled.skipped", "SUCCESS SUCCESS 0 SUCCESS SUCCESS 5", [](Ready& a) {
    const CUdeviceptr p = Cleared(a, 64);
    Sketch s(a);
    const CUgraphNode n = s.Fill(p, 5, 64, a.context);
    s.Instantiate();
    a(a.d.GraphNodeSetEnabled(s.x, n, 0));
    a(a.d.GraphLaunch(s.x, nullptr));
    a.ByteAt(p);
    a(a.d.GraphNodeSetEnabled(s.x, n, 2));
    a(a.d.GraphLaunch(s.x, nullptr));
    a.ByteAt(p);
    (void)a.d.MemFree(p);
  });
}

}  // namespace cuaudit::contract::graph_update_questions
