// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::graph_ownership_questions {
namespace {

void Bump(void* argument) { ++*static_cast<int*>(argument); }

// A genuine driver calls destructors from a thread of its own, some time after the last reference went.
void Wait(Asker& a, const int* died) {
  const volatile int* const seen = died;
  for (int i = 0; i < 100000 && *seen == 0; ++i) (void)a.d.CtxSynchronize(nullptr);
}

constexpr Question kQuestions[] = {
    {"graph.cycle_instantiate", "SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       CUgraphNode o = nullptr;
       a.Prepare(a.d.GraphAddEmptyNode(&o, g, &n, 1));
       a(a.d.GraphAddDependencies(g, &o, &n, nullptr, 1));
       a(a.d.GraphInstantiateWithFlags(&x, g, 0));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.self_edge", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a(a.d.GraphAddDependencies(g, &n, &n, nullptr, 1));
       (void)a.d.GraphDestroy(g);
     }},
    // A graph as a child of a graph that lies within it.
    {"graph.child_of_what_it_holds", "crash", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph outer = nullptr;
       CUgraph inner = nullptr;
       CUgraph within = nullptr;
       CUgraphNode n = nullptr;
       std::size_t nodes = 0;
       a.Prepare(a.d.GraphCreate(&outer, 0));
       a.Prepare(a.d.GraphCreate(&inner, 0));
       a.Prepare(a.d.GraphAddChildGraphNode(&n, outer, nullptr, 0, inner));
       a.Prepare(a.d.GraphChildGraphNodeGetGraph(n, &within));
       a(a.d.GraphAddChildGraphNode(&n, within, nullptr, 0, outer));
       a(a.d.GraphGetNodes(within, nullptr, &nodes));
       a.Value(static_cast<long long>(nodes));
     }},
#if CUDA_VERSION >= 13000
    {"graph.moved_into_what_it_holds", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph outer = nullptr;
       CUgraph inner = nullptr;
       CUgraph within = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&outer, 0));
       a.Prepare(a.d.GraphCreate(&inner, 0));
       a.Prepare(a.d.GraphAddChildGraphNode(&n, outer, nullptr, 0, inner));
       a.Prepare(a.d.GraphChildGraphNodeGetGraph(n, &within));
       CUgraphNodeParams node{};
       node.type = CU_GRAPH_NODE_TYPE_GRAPH;
       node.graph.graph = outer;
       node.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
       a(a.d.GraphAddNode(&n, within, nullptr, nullptr, 0, &node));
     }},
#endif
    {"graph.destroy_null", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.GraphDestroy(nullptr));
     }},
    {"graph.exec_destroy_null", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.GraphExecDestroy(nullptr));
     }},
    {"graph.launch_destroyed", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a(a.d.GraphExecDestroy(x));
       a(a.d.GraphLaunch(x, nullptr));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.exec_destroy_in_flight", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a(a.d.GraphLaunch(x, nullptr));
       a(a.d.GraphExecDestroy(x));
       a(a.d.StreamSynchronize(nullptr));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.node_of_destroyed", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       CUgraphNodeType type{};
       a.Prepare(a.d.GraphDestroy(g));
       a(a.d.GraphNodeGetType(n, &type));
     }},
    {"graph.destroy_node_twice", "crash", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       a(a.d.GraphDestroyNode(n));
       a(a.d.GraphDestroyNode(n));
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.clone_outlives", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       CUgraph clone = nullptr;
       a(a.d.GraphClone(&clone, g));
       a(a.d.GraphDestroy(g));
       a(a.d.GraphDestroy(clone));
     }},
    {"graph.empty_launch", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a(a.d.GraphLaunch(x, nullptr));
       a(a.d.StreamSynchronize(nullptr));
       (void)a.d.GraphExecDestroy(x);
       (void)a.d.GraphDestroy(g);
     }},
    {"graph.alloc_node", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
       wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       wanted.bytesize = 1024;
       CUgraphNode allocation = nullptr;
       a(a.d.GraphAddMemAllocNode(&allocation, g, nullptr, 0, &wanted));
       a.Value(wanted.dptr != 0);
       (void)a.d.GraphDestroy(g);
     }},
    {"user_object.after_launch", "0 SUCCESS SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a.Prepare(a.d.GraphRetainUserObject(g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a.Prepare(a.d.GraphDestroy(g));
       a.Prepare(a.d.GraphLaunch(x, nullptr));
       a.Value(died);
       a(a.d.GraphExecDestroy(x));
       a(a.d.StreamSynchronize(nullptr));
       Wait(a, &died);
       a.Value(died);
     }},
    {"user_object.graph_then_executable", "0 0 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphExec x = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a.Prepare(a.d.GraphRetainUserObject(g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a.Prepare(a.d.GraphExecDestroy(x));
       a.Value(died);
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a.Prepare(a.d.GraphDestroy(g));
       a.Value(died);
       a.Prepare(a.d.GraphExecDestroy(x));
       Wait(a, &died);
       a.Value(died);
     }},
    {"user_object.zero_counts", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.UserObjectRetain(u, 0));
       a(a.d.UserObjectRelease(u, 0));
       a(a.d.GraphRetainUserObject(g, u, 0, 0));
       a(a.d.GraphReleaseUserObject(g, u, 0));
       (void)a.d.UserObjectRelease(u, 1);
       (void)a.d.GraphDestroy(g);
     }},
    {"user_object.bad_retain_flags", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.GraphRetainUserObject(g, u, 1, 0x10));
       (void)a.d.UserObjectRelease(u, 1);
       (void)a.d.GraphDestroy(g);
     }},
    {"user_object.graph_holds_none", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.GraphReleaseUserObject(g, u, 1));
     }},
    {"user_object.graph_over_release", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.GraphRetainUserObject(g, u, 1, 0));
       a(a.d.GraphReleaseUserObject(g, u, 2));
     }},
    {"user_object.release_after_death", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
       static int died = 0;
       died = 0;
       CUuserObject u = nullptr;
       a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
       a(a.d.UserObjectRelease(u, 1));
       a(a.d.UserObjectRelease(u, 1));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::graph_ownership_questions

namespace cuaudit::contract {
std::span<const Question> GraphOwnershipQuestions() { return graph_ownership_questions::kQuestions; }
}  // namespace cuaudit::contract
