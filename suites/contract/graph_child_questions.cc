// SPDX-License-Identifier: MIT
// What lies in a node: the graph that was moved there, or the copy of one, and what is added to it afterwards.
#include "suites/contract/graph_furniture.h"

namespace cuaudit::contract {
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
    {"graph_child.memory_added_after_the_move", "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       Sketch outer(a);
       Sketch inner(a);
       CUdeviceptr p = 0;
       (void)Move(a, outer.g, inner.g);
       (void)inner.Alloc(4096, &p);
       inner.g = nullptr;
       Launch(a, &outer);
       a(a.d.MemsetD8(p, 1, 4096));
       a(a.d.MemFree(p));
     }},
    // The node that holds it, or the graph of that, is destroyed: what becomes of a node within?
    {"graph_child.node_of_it_after_its_node", "SUCCESS SUCCESS INVALID_VALUE", Manner::Risky,
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
    {"graph_child.twice_moved", "SUCCESS INVALID_VALUE", Manner::Risky,
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

std::span<const Question> GraphChildQuestions() { return kQuestions; }

}  // namespace cuaudit::contract
