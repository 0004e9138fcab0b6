// SPDX-License-Identifier: MIT
// What lies in a node: a graph that was moved there or a copy of one. And whose the memory is that a graph allocates.
#include "suites/contract/graph/graph_furniture.h"

namespace cuaudit::contract::graph_child_questions {
namespace {

#if CUDA_VERSION >= 13000  // older toolkits know no ownership
CUgraphNode Move(Asker& a, CUgraph parent, CUgraph child) {
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
  parameters.graph.graph = child;
  parameters.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  CUgraphNode n = nullptr;
  a(a.d.GraphAddNode(&n, parent, nullptr, nullptr, 0, &parameters));
  return n;
}
#endif

CUgraphNode Copy(Asker& a, CUgraph parent, CUgraph child, CUgraph* within) {
  CUgraphNode n = nullptr;
  a.Prepare(a.d.GraphAddChildGraphNode(&n, parent, nullptr, 0, child));
  a(a.d.GraphChildGraphNodeGetGraph(n, within));
  return n;
}

void Launch(Asker& a, Sketch* sketch) {
  sketch->Instantiate();
  a(a.d.GraphLaunch(sketch->x, nullptr));
  a(a.d.StreamSynchronize(nullptr));
}

void Count(Asker& a, CUgraph graph) {
  std::size_t nodes = 0;
  if (a(a.d.GraphGetNodes(graph, nullptr, &nodes)) == CUDA_SUCCESS) a.Value(static_cast<long long>(nodes));
}

// A graph whose memory outlives its launch, so that another launch finds it there; primary's where nothing else is current.
struct Launching {
  explicit Launching(Asker& asker) : a(asker), s(asker) {
    (void)s.Alloc(4096, &p);
    s.Instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    a.Prepare(a.d.CtxGetCurrent(&primary));
  }
  void Enter(CUcontext* context) {
    if (*context == nullptr) {
      a.Prepare(a.d.CtxCreate(context, nullptr, 0, 0));
    } else {
      a.Prepare(a.d.CtxPushCurrent(*context));
    }
  }
  void Leave() {
    CUcontext popped = nullptr;
    a.Prepare(a.d.CtxPopCurrent(&popped));
  }
  void Launch(CUstream stream = nullptr) {
    a(a.d.GraphLaunch(s.x, stream));
    a(a.d.StreamSynchronize(nullptr));
  }
  // 0: nobody's, 1: the primary context's, 2: the other one's.
  void Owner() {
    CUcontext owner = nullptr;
    a(a.d.PointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    a.Value(owner == nullptr ? 0 : owner == primary ? 1 : 2);
  }
  // Whether it is still there.
  void Ask() {
    unsigned long long id = 0;
    a(a.d.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
  }

  Asker& a;
  Sketch s;
  CUdeviceptr p = 0;
  CUcontext primary = nullptr, other = nullptr;
};

}  // namespace

void List(Questions& ask) {
#if CUDA_VERSION >= 13000
  ask.Risky("graph_child.added_after_the_move", "SUCCESS x3 7 SUCCESS 1", [](Ready& a, Sketch& outer, Sketch& inner) {
    const CUdeviceptr p = Cleared(a, 4096);
    (void)Move(a, outer.g, inner.g);
    (void)inner.Fill(p, 7, 4096, a.context);
    Launch(a, &outer);
    a.ByteAt(p);
    Count(a, inner.g);
    inner.g = nullptr;
  });
  ask.Risky("graph_child.memory_added_after_the_move", "SUCCESS NOT_SUPPORTED NOT_SUPPORTED SUCCESS 0",
            [](Ready& a, const Sketch& outer, Sketch& inner) {
              CUgraphNode n = nullptr;
              CUDA_MEM_ALLOC_NODE_PARAMS alloc = Sketch::AllocOf(4096);
              (void)Move(a, outer.g, inner.g);
              a(a.d.GraphAddMemAllocNode(&n, inner.g, nullptr, 0, &alloc));
              a(a.d.GraphAddMemFreeNode(&n, inner.g, nullptr, 0, Cleared(a, 4096)));
              Count(a, inner.g);
              inner.g = nullptr;
            });
  ask.Risky("graph_child.instantiated_after_the_move", "SUCCESS NOT_SUPPORTED", [](Ready& a, const Sketch& outer, Sketch& inner) {
    (void)inner.Empty();
    (void)Move(a, outer.g, inner.g);
    a(a.d.GraphInstantiateWithFlags(&inner.x, inner.g, 0));
    inner.g = nullptr;
  });
  ask.Risky("graph_child.updates_after_the_move", "SUCCESS INVALID_VALUE 0", [](Ready& a, const Sketch& outer, Sketch& inner) {
    CUgraphExecUpdateResultInfo info{};
    (void)inner.Empty();
    inner.Instantiate();
    (void)Move(a, outer.g, inner.g);
    a(a.d.GraphExecUpdate(inner.x, inner.g, &info), info.result);
    inner.g = nullptr;
  });
  ask.Risky("graph_child.copied_after_the_move", "SUCCESS NOT_SUPPORTED",
            [](Ready& a, const Sketch& outer, const Sketch& other, Sketch& inner) {
              (void)inner.Empty();
              (void)Move(a, outer.g, inner.g);
              a(a.d.GraphAddChildGraphNode(kIgnored, other.g, nullptr, 0, inner.g));
              inner.g = nullptr;
            });
  ask.Risky("graph_child.captured_into_after_the_move", "SUCCESS x5 1", [](Ready& a, const Sketch& outer, Sketch& inner) {
    CUgraph g = nullptr;
    const CUstream s = a.StreamCreate();
    (void)Move(a, outer.g, inner.g);
    a(a.d.StreamBeginCaptureToGraph(s, inner.g, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    a(a.d.LaunchHostFunc(s, Nothing, nullptr));
    a(a.d.StreamEndCapture(s, &g));
    Count(a, inner.g);
    inner.g = nullptr;
  });
  // The node that holds it, or the graph of that, is destroyed: what becomes of a node within?
  ask.Risky("graph_child.node_of_it_after_its_node", "SUCCESS x3", [](Ready& a, Sketch& outer, Sketch& inner) {
    const CUgraphNode within = inner.Empty(), holder = Move(a, outer.g, inner.g);
    inner.g = nullptr;
    a(a.d.GraphDestroyNode(holder));
    a(a.d.GraphNodeGetType(within, kIgnored));
  });
  ask.Risky("graph_child.twice_moved", "SUCCESS NOT_SUPPORTED", [](Ready& a, Sketch& outer, Sketch& other, Sketch& inner) {
    (void)Move(a, outer.g, inner.g);
    (void)Move(a, other.g, inner.g);
    inner.g = nullptr;
  });
  ask.Risky("graph_child.moved_cloned", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 7", [](Ready& a, Sketch& outer, Sketch& inner) {
    const CUdeviceptr p = Cleared(a, 4096);
    (void)inner.Fill(p, 7, 4096, a.context);
    (void)Move(a, outer.g, inner.g);
    Sketch clone(a);
    (void)a.d.GraphDestroy(clone.g);
    a.Prepare(a.d.GraphClone(&clone.g, inner.g));
    inner.g = nullptr;
    Count(a, clone.g);
    Launch(a, &clone);
    a.ByteAt(p);
  });
#endif
  ask.Risky("graph_child.added_to_the_copy", "SUCCESS x3 7 SUCCESS 0 SUCCESS 1", [](Ready& a, Sketch& outer, const Sketch& inner) {
    const CUdeviceptr p = Cleared(a, 4096);
    CUgraph within = nullptr;
    (void)Copy(a, outer.g, inner.g, &within);
    (void)Sketch::FillIn(a, within, p, 7, 4096, a.context);
    Launch(a, &outer);
    a.ByteAt(p);
    Count(a, inner.g);
    Count(a, within);
  });
  ask.Risky("graph_child.memory_added_to_the_copy", "SUCCESS NOT_SUPPORTED SUCCESS 0",
            [](Ready& a, const Sketch& outer, const Sketch& inner) {
              CUgraph within = nullptr;
              CUDA_MEM_ALLOC_NODE_PARAMS alloc = Sketch::AllocOf(4096);
              (void)Copy(a, outer.g, inner.g, &within);
              a(a.d.GraphAddMemAllocNode(kIgnored, within, nullptr, 0, &alloc));
              Count(a, within);
            });
  ask.Risky("graph_child.copy_by_itself", "SUCCESS NOT_SUPPORTED INVALID_VALUE", [](Ready& a, const Sketch& outer, Sketch& inner) {
    CUgraph within = nullptr;
    (void)inner.Empty();
    (void)Copy(a, outer.g, inner.g, &within);
    a(a.d.GraphInstantiateWithFlags(&inner.x, within, 0));
    a(a.d.GraphDestroy(within));
  });
  ask.Risky("graph_child.copy_updates", "SUCCESS INVALID_VALUE 0", [](Ready& a, const Sketch& outer, Sketch& inner) {
    CUgraph within = nullptr;
    CUgraphExecUpdateResultInfo info{};
    (void)inner.Empty();
    inner.Instantiate();
    (void)Copy(a, outer.g, inner.g, &within);
    a(a.d.GraphExecUpdate(inner.x, within, &info), info.result);
  });
  ask.Risky("graph_child.copy_is_copied", "SUCCESS NOT_SUPPORTED",
            [](Ready& a, const Sketch& outer, const Sketch& other, const Sketch& inner) {
              CUgraph within = nullptr;
              (void)Copy(a, outer.g, inner.g, &within);
              a(a.d.GraphAddChildGraphNode(kIgnored, other.g, nullptr, 0, within));
            });
  ask.Risky("graph_child.copy_is_set_as_a_child", "SUCCESS SUCCESS", [](Ready& a, Sketch& outer, const Sketch& other, Sketch& inner) {
    CUgraph within = nullptr, elsewhere = nullptr;
    const CUgraphNode n = Copy(a, outer.g, inner.g, &within);
    CUgraphNode m = nullptr;
    a.Prepare(a.d.GraphAddChildGraphNode(&m, other.g, nullptr, 0, inner.g));
    a.Prepare(a.d.GraphChildGraphNodeGetGraph(m, &elsewhere));
    outer.Instantiate();
    a(a.d.GraphExecChildGraphNodeSetParams(outer.x, n, elsewhere));
  });
  ask.Risky("graph_child.copy_is_moved", "SUCCESS NOT_SUPPORTED",
            [](Ready& a, const Sketch& outer, const Sketch& other, const Sketch& inner) {
              CUgraph within = nullptr;
              (void)Copy(a, outer.g, inner.g, &within);
#if CUDA_VERSION >= 13000
              (void)Move(a, other.g, within);
#endif
            });
  ask.Risky("graph_child.copys_handle_is_the_same", "SUCCESS SUCCESS 1", [](Ready& a, const Sketch& outer, const Sketch& inner) {
    CUgraph within = nullptr, again = nullptr;
    const CUgraphNode n = Copy(a, outer.g, inner.g, &within);
    a(a.d.GraphChildGraphNodeGetGraph(n, &again));
    a.Value(again == within);
  });
  ask.Risky("graph_context.launched_elsewhere", "SUCCESS x3 0 SUCCESS SUCCESS", [](Ready& a, Launching& l) {
    l.Enter(&l.other);
    l.Launch();
    l.Owner();
    a(a.d.CtxDestroy(l.other));
    l.Ask();
  });
  ask.Risky("graph_context.launched_here_then_elsewhere", "SUCCESS x3 0 SUCCESS x3 0 SUCCESS SUCCESS", [](Ready& a, Launching& l) {
    l.Launch();
    l.Owner();
    l.Enter(&l.other);
    l.Launch();
    l.Owner();
    a(a.d.CtxDestroy(l.other));
    l.Ask();
  });
  ask.Risky("graph_context.launched_elsewhere_then_here", "SUCCESS x5 0 SUCCESS SUCCESS", [](Ready& a, Launching& l) {
    l.Enter(&l.other);
    l.Launch();
    l.Leave();
    l.Launch();
    l.Owner();
    a(a.d.CtxDestroy(l.other));
    l.Ask();
  });
  ask.Risky("graph_context.launched_on_a_stream_of_another", "SUCCESS x3 0 SUCCESS SUCCESS", [](Ready& a, Launching& l) {
    l.Enter(&l.other);
    const CUstream there = a.StreamCreate();
    l.Leave();
    a(a.d.GraphLaunch(l.s.x, there));
    a(a.d.StreamSynchronize(there));
    l.Owner();
    a(a.d.CtxDestroy(l.other));
    l.Ask();
  });
  ask.Risky("graph_context.instantiated_elsewhere", "SUCCESS x3 0 SUCCESS x4", [](Ready& a) {
    CUcontext primary = nullptr;
    a.Prepare(a.d.CtxGetCurrent(&primary));
    const CUcontext other = a.CtxCreate();
    Launching l(a);
    l.primary = primary;
    l.Leave();
    l.Launch();
    l.Owner();
    a(a.d.CtxDestroy(other));
    l.Ask();
    a(a.d.GraphLaunch(l.s.x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
  });
  // A stream-ordered allocation beside it, on the null stream of the other context.
  ask.Risky("graph_context.stream_ordered_elsewhere", "SUCCESS x3 0 SUCCESS SUCCESS", [](Ready& a, Launching& l) {
    l.Enter(&l.other);
    a(a.d.MemAllocAsync(&l.p, 4096, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    l.Owner();
    a(a.d.CtxDestroy(l.other));
    l.Ask();
  });
}

}  // namespace cuaudit::contract::graph_child_questions
