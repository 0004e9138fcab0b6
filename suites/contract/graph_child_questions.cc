// SPDX-License-Identifier: MIT
// What lies in a node: the graph that was moved there, or the copy of one, and what is added to it afterwards.
#include "suites/contract/graph_furniture.h"

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

constexpr Question kQuestions[] = {
#if CUDA_VERSION >= 13000
    {"graph_child.added_after_the_move", "SUCCESS SUCCESS SUCCESS 7 SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch outer(a);
       Sketch inner(a);
       const CUdeviceptr p = Cleared(a, 4096);
       (void)Move(a, outer.g, inner.g);
       (void)inner.Fill(p, 7, 4096, ready.context);
       Launch(a, &outer);
       ShowByte(a, p);
       Count(a, inner.g);
       inner.g = nullptr;
     }},
    {"graph_child.memory_added_after_the_move", "SUCCESS NOT_SUPPORTED NOT_SUPPORTED SUCCESS 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       Sketch inner(a);
       CUgraphNode n = nullptr;
       CUDA_MEM_ALLOC_NODE_PARAMS alloc = Sketch::AllocOf(4096);
       (void)Move(a, outer.g, inner.g);
       a(a.d.GraphAddMemAllocNode(&n, inner.g, nullptr, 0, &alloc));
       a(a.d.GraphAddMemFreeNode(&n, inner.g, nullptr, 0, Cleared(a, 4096)));
       Count(a, inner.g);
       inner.g = nullptr;
     }},
    {"graph_child.instantiated_after_the_move", "SUCCESS NOT_SUPPORTED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       Sketch inner(a);
       (void)inner.Empty();
       (void)Move(a, outer.g, inner.g);
       a(a.d.GraphInstantiateWithFlags(&inner.x, inner.g, 0));
       inner.g = nullptr;
     }},
    {"graph_child.updates_after_the_move", "SUCCESS INVALID_VALUE 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       Sketch inner(a);
       CUgraphExecUpdateResultInfo info{};
       (void)inner.Empty();
       inner.Instantiate();
       (void)Move(a, outer.g, inner.g);
       a(a.d.GraphExecUpdate(inner.x, inner.g, &info));
       a.Value(info.result);
       inner.g = nullptr;
     }},
    {"graph_child.copied_after_the_move", "SUCCESS NOT_SUPPORTED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       const Sketch other(a);
       Sketch inner(a);
       CUgraphNode n = nullptr;
       (void)inner.Empty();
       (void)Move(a, outer.g, inner.g);
       a(a.d.GraphAddChildGraphNode(&n, other.g, nullptr, 0, inner.g));
       inner.g = nullptr;
     }},
    {"graph_child.captured_into_after_the_move", "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       Sketch inner(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       (void)Move(a, outer.g, inner.g);
       a(a.d.StreamBeginCaptureToGraph(s, inner.g, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
       a(a.d.LaunchHostFunc(s, Nothing, nullptr));
       a(a.d.StreamEndCapture(s, &g));
       Count(a, inner.g);
       inner.g = nullptr;
     }},
    // The node that holds it, or the graph of that, is destroyed: what becomes of a node within?
    {"graph_child.node_of_it_after_its_node", "SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch outer(a);
       Sketch inner(a);
       const CUgraphNode within = inner.Empty();
       const CUgraphNode holder = Move(a, outer.g, inner.g);
       inner.g = nullptr;
       a(a.d.GraphDestroyNode(holder));
       CUgraphNodeType type{};
       a(a.d.GraphNodeGetType(within, &type));
     }},
    {"graph_child.twice_moved", "SUCCESS NOT_SUPPORTED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch outer(a);
       Sketch other(a);
       Sketch inner(a);
       (void)Move(a, outer.g, inner.g);
       (void)Move(a, other.g, inner.g);
       inner.g = nullptr;
     }},
    {"graph_child.moved_cloned", "SUCCESS SUCCESS 1 SUCCESS SUCCESS 7", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch outer(a);
       Sketch inner(a);
       const CUdeviceptr p = Cleared(a, 4096);
       (void)inner.Fill(p, 7, 4096, ready.context);
       (void)Move(a, outer.g, inner.g);
       Sketch clone(a);
       (void)a.d.GraphDestroy(clone.g);
       a.Prepare(a.d.GraphClone(&clone.g, inner.g));
       inner.g = nullptr;
       Count(a, clone.g);
       Launch(a, &clone);
       ShowByte(a, p);
     }},
#endif
    {"graph_child.added_to_the_copy", "SUCCESS SUCCESS SUCCESS 7 SUCCESS 0 SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch outer(a);
       const Sketch inner(a);
       const CUdeviceptr p = Cleared(a, 4096);
       CUgraph within = nullptr;
       (void)Copy(a, outer.g, inner.g, &within);
       (void)Sketch::FillIn(a, within, p, 7, 4096, ready.context);
       Launch(a, &outer);
       ShowByte(a, p);
       Count(a, inner.g);
       Count(a, within);
     }},
    {"graph_child.memory_added_to_the_copy", "SUCCESS NOT_SUPPORTED SUCCESS 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       const Sketch inner(a);
       CUgraph within = nullptr;
       CUgraphNode n = nullptr;
       CUDA_MEM_ALLOC_NODE_PARAMS alloc = Sketch::AllocOf(4096);
       (void)Copy(a, outer.g, inner.g, &within);
       a(a.d.GraphAddMemAllocNode(&n, within, nullptr, 0, &alloc));
       Count(a, within);
     }},
    {"graph_child.copy_by_itself", "SUCCESS NOT_SUPPORTED INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       Sketch inner(a);
       CUgraph within = nullptr;
       (void)inner.Empty();
       (void)Copy(a, outer.g, inner.g, &within);
       a(a.d.GraphInstantiateWithFlags(&inner.x, within, 0));
       a(a.d.GraphDestroy(within));
     }},
    {"graph_child.copy_updates", "SUCCESS INVALID_VALUE 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       Sketch inner(a);
       CUgraph within = nullptr;
       CUgraphExecUpdateResultInfo info{};
       (void)inner.Empty();
       inner.Instantiate();
       (void)Copy(a, outer.g, inner.g, &within);
       a(a.d.GraphExecUpdate(inner.x, within, &info));
       a.Value(info.result);
     }},
    {"graph_child.copy_is_copied", "SUCCESS NOT_SUPPORTED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       const Sketch other(a);
       const Sketch inner(a);
       CUgraph within = nullptr;
       CUgraphNode n = nullptr;
       (void)Copy(a, outer.g, inner.g, &within);
       a(a.d.GraphAddChildGraphNode(&n, other.g, nullptr, 0, within));
     }},
    {"graph_child.copy_is_set_as_a_child", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch outer(a);
       const Sketch other(a);
       Sketch inner(a);
       CUgraph within = nullptr;
       CUgraph elsewhere = nullptr;
       const CUgraphNode n = Copy(a, outer.g, inner.g, &within);
       CUgraphNode m = nullptr;
       a.Prepare(a.d.GraphAddChildGraphNode(&m, other.g, nullptr, 0, inner.g));
       a.Prepare(a.d.GraphChildGraphNodeGetGraph(m, &elsewhere));
       outer.Instantiate();
       a(a.d.GraphExecChildGraphNodeSetParams(outer.x, n, elsewhere));
     }},
    {"graph_child.copy_is_moved", "SUCCESS NOT_SUPPORTED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       const Sketch other(a);
       const Sketch inner(a);
       CUgraph within = nullptr;
       (void)Copy(a, outer.g, inner.g, &within);
#if CUDA_VERSION >= 13000
       (void)Move(a, other.g, within);
#endif
     }},
    {"graph_child.copys_handle_is_the_same", "SUCCESS SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Sketch outer(a);
       const Sketch inner(a);
       CUgraph within = nullptr;
       CUgraph again = nullptr;
       const CUgraphNode n = Copy(a, outer.g, inner.g, &within);
       a(a.d.GraphChildGraphNodeGetGraph(n, &again));
       a.Value(again == within);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::graph_child_questions

namespace cuaudit::contract {
std::span<const Question> GraphChildQuestions() { return graph_child_questions::kQuestions; }
}  // namespace cuaudit::contract
