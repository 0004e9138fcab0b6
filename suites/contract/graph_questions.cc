// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::graph_questions {
namespace {

void Bump(void* argument) { ++*static_cast<int*>(argument); }

constexpr Question kQuestions[] = {
    {"graph.create_destroy", "SUCCESS SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a(a.d.GraphCreate(&g, 0));
       a(a.d.GraphDestroy(g));
       a(a.d.GraphCreate(&g, 1));
     }},
    {"graph.destroy_twice", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a(a.d.GraphDestroy(g));
       a(a.d.GraphDestroy(g));
     }},
    {"graph.nodes_and_edges", "SUCCESS 2 SUCCESS 1 SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       std::size_t count = 0;
       a(a.d.GraphGetNodes(g, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(a.d.GraphGetRootNodes(g, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(a.d.GraphGetEdges(g, nullptr, nullptr, nullptr, &count));
       a.Value(static_cast<long long>(count));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.cycle", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       a(a.d.GraphAddDependencies(g, &o, &n, nullptr, 1));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.double_edge", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       a(a.d.GraphAddDependencies(g, &n, &o, nullptr, 1));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.remove_missing_edge", "SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       a(a.d.GraphRemoveDependencies(g, &n, &o, nullptr, 1));
       a(a.d.GraphRemoveDependencies(g, &n, &o, nullptr, 1));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.destroy_node", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       std::size_t count = 0;
       a(a.d.GraphDestroyNode(n));
       a.Prepare(a.d.GraphGetNodes(g, nullptr, &count));
       a.Value(static_cast<long long>(count));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.foreign_dependency", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraph h = nullptr;
       CUgraphNode q = nullptr;
       a.Prepare(a.d.GraphCreate(&h, 0));
       a(a.d.GraphAddEmptyNode(&q, h, &n, 1));
       (void)a.d.GraphDestroy(h);
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.clone", "SUCCESS SUCCESS 1 SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraph h = nullptr;
       CUgraphNode q = nullptr;
       a(a.d.GraphClone(&h, g));
       a(a.d.GraphNodeFindInClone(&q, n, h));
       a.Value(q != n);
       a(a.d.GraphDestroy(h));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.find_in_no_clone", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraphNode q = nullptr;
       a(a.d.GraphNodeFindInClone(&q, n, g));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.node_type", "SUCCESS 5", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraphNodeType type{};
       a(a.d.GraphNodeGetType(n, &type));
       a.Value(type);
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.launch_host_node", "SUCCESS SUCCESS SUCCESS 1 SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       int ran = 0;
       CUgraphNode n = nullptr;
       CUgraphExec x = nullptr;
       const CUDA_HOST_NODE_PARAMS host{Bump, &ran};
       a.Prepare(a.d.GraphAddHostNode(&n, g, nullptr, 0, &host));
       a(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a(a.d.GraphLaunch(x, nullptr));
       a(a.d.StreamSynchronize(nullptr));
       a.Value(ran);
       a(a.d.GraphExecDestroy(x));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.exec_survives_graph", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraphExec x = nullptr;
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a(a.d.GraphDestroy(g));
       a(a.d.GraphLaunch(x, nullptr));
       a(a.d.StreamSynchronize(nullptr));
       (void)a.d.GraphExecDestroy(x);
     }},
    {"graph.exec_destroy_twice", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraphExec x = nullptr;
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a(a.d.GraphExecDestroy(x));
       a(a.d.GraphExecDestroy(x));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.instantiate_bad_flags", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraphExec x = nullptr;
       a(a.d.GraphInstantiateWithFlags(&x, g, 0x1000));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.host_node_null", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       const CUDA_HOST_NODE_PARAMS host{nullptr, nullptr};
       a(a.d.GraphAddHostNode(&n, g, nullptr, 0, &host));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.update_same", "SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraphExec x = nullptr;
       CUgraphExecUpdateResultInfo info{};
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a(a.d.GraphExecUpdate(x, g, &info));
       a.Value(info.result);
       (void)a.d.GraphExecDestroy(x);
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.update_topology", "GRAPH_EXEC_UPDATE_FAILURE 2", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraphExec x = nullptr;
       CUgraphNode q = nullptr;
       CUgraphExecUpdateResultInfo info{};
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&q, g, nullptr, 0));
       a(a.d.GraphExecUpdate(x, g, &info));
       a.Value(info.result);
       (void)a.d.GraphExecDestroy(x);
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.child", "SUCCESS SUCCESS 1 INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       CUgraphNode n = nullptr;
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       CUgraph h = nullptr;
       CUgraph inner = nullptr;
       CUgraphNode q = nullptr;
       a.Prepare(a.d.GraphCreate(&h, 0));
       a(a.d.GraphAddChildGraphNode(&q, h, nullptr, 0, g));
       a(a.d.GraphChildGraphNodeGetGraph(q, &inner));
       a.Value(inner != g);
       a(a.d.GraphDestroy(inner));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::graph_questions

namespace cuaudit::contract {
std::span<const Question> GraphQuestions() { return graph_questions::kQuestions; }
}  // namespace cuaudit::contract
