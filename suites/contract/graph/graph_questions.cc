// SPDX-License-Identifier: MIT
// Graphs, their nodes and executables, and the user objects that they own.
#include "suites/contract/question.h"

namespace cuaudit::contract::graph_questions {
namespace {

// A graph of two empty nodes, the second of which depends on the first.
struct TwoNodes {
  explicit TwoNodes(Asker& a) : g(a.GraphCreate()), n(a.GraphAddEmptyNode(g)), o(a.GraphAddEmptyNode(g, n)) {}
  const CUgraph g;
  const CUgraphNode n, o;
};

// A graph with one node, and a user object whose destructor counts.
struct UserObject {
  explicit UserObject(Asker& asker) : a(asker) {
    died = 0;
    a.Prepare(a.d.GraphCreate(&g, 0));
    a.GraphAddEmptyNode(g);
    a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  }
  void Release() const {
    (void)a.d.UserObjectRelease(u, 1);
    (void)a.d.GraphDestroy(g);
  }
  void Died() const { a.Value(died); }
  // A genuine driver calls destructors from a thread of its own, some time after the last reference went.
  void DiedAtLast() const {
    const volatile int* const seen = &died;
    for (int i = 0; i < 100000 && *seen == 0; ++i) (void)a.d.CtxSynchronize(nullptr);
    Died();
  }

  Asker& a;
  CUgraph g = nullptr;
  CUuserObject u = nullptr;
  static inline int died = 0;
};

}  // namespace

void List(Questions& ask) {
  ask.Plain("graph.create_destroy", "SUCCESS SUCCESS INVALID_VALUE", [](Ready& a) {
    CUgraph g = nullptr;
    a(a.d.GraphCreate(&g, 0));
    a(a.d.GraphDestroy(g));
    a(a.d.GraphCreate(&g, 1));
  });
  ask.Risky("graph.destroy_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUgraph g = a.GraphCreate();
    a(a.d.GraphDestroy(g));
    a(a.d.GraphDestroy(g));
  });
  ask.Plain("graph.nodes_and_edges", "SUCCESS 2 SUCCESS 1 SUCCESS 1", [](Ready& a, const TwoNodes& two) {
    std::size_t count = 0;
    a(a.d.GraphGetNodes(two.g, nullptr, &count), count);
    a(a.d.GraphGetRootNodes(two.g, nullptr, &count), count);
    a(a.d.GraphGetEdges(two.g, nullptr, nullptr, nullptr, &count), count);
  });
  ask.Plain("graph.cycle", "SUCCESS",
            [](Ready& a, const TwoNodes& two) { a(a.d.GraphAddDependencies(two.g, &two.o, &two.n, nullptr, 1)); });
  ask.Plain("graph.double_edge", "INVALID_VALUE",
            [](Ready& a, const TwoNodes& two) { a(a.d.GraphAddDependencies(two.g, &two.n, &two.o, nullptr, 1)); });
  ask.Plain("graph.remove_missing_edge", "SUCCESS INVALID_VALUE", [](Ready& a, const TwoNodes& two) {
    a(a.d.GraphRemoveDependencies(two.g, &two.n, &two.o, nullptr, 1));
    a(a.d.GraphRemoveDependencies(two.g, &two.n, &two.o, nullptr, 1));
  });
  ask.Plain("graph.destroy_node", "SUCCESS 1", [](Ready& a, const TwoNodes& two) {
    std::size_t count = 0;
    a(a.d.GraphDestroyNode(two.n));
    a.Values(a.d.GraphGetNodes(two.g, nullptr, &count), count);
  });
  ask.Plain("graph.foreign_dependency", "INVALID_VALUE", [](Ready& a, const TwoNodes& two) {
    const CUgraph h = a.GraphCreate();
    a(a.d.GraphAddEmptyNode(kIgnored, h, &two.n, 1));
  });
  ask.Plain("graph.clone", "SUCCESS SUCCESS 1 SUCCESS", [](Ready& a, const TwoNodes& two) {
    CUgraph h = nullptr;
    CUgraphNode q = nullptr;
    a(a.d.GraphClone(&h, two.g));
    a(a.d.GraphNodeFindInClone(&q, two.n, h));
    a.Value(q != two.n);
    a(a.d.GraphDestroy(h));
  });
  ask.Plain("graph.find_in_no_clone", "INVALID_VALUE",
            [](Ready& a, const TwoNodes& two) { a(a.d.GraphNodeFindInClone(kIgnored, two.n, two.g)); });
  ask.Plain("graph.node_type", "SUCCESS 5", [](Ready& a, const TwoNodes& two) {
    CUgraphNodeType type{};
    a(a.d.GraphNodeGetType(two.n, &type), type);
  });
  ask.Plain("graph.launch_host_node", "SUCCESS x3 1 SUCCESS", [](Ready& a) {
    const CUgraph g = a.GraphCreate();
    int ran = 0;
    CUgraphExec x = nullptr;
    const CUDA_HOST_NODE_PARAMS host{Bump, &ran};
    a.Prepare(a.d.GraphAddHostNode(kIgnored, g, nullptr, 0, &host));
    a(a.d.GraphInstantiateWithFlags(&x, g, 0));
    a(a.d.GraphLaunch(x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    a.Value(ran);
    a(a.d.GraphExecDestroy(x));
  });
  ask.Plain("graph.exec_survives_graph", "SUCCESS x3", [](Ready& a) {
    CUgraph g = nullptr;
    a.Prepare(a.d.GraphCreate(&g, 0));
    CUgraphNode n = a.GraphAddEmptyNode(g);
    a.GraphAddEmptyNode(g, n);
    const CUgraphExec x = a.GraphInstantiate(g);
    a(a.d.GraphDestroy(g));
    a(a.d.GraphLaunch(x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
  });
  ask.Risky("graph.exec_destroy_twice", "SUCCESS INVALID_VALUE", [](Ready& a, const TwoNodes& two) {
    const CUgraphExec x = a.GraphInstantiate(two.g);
    a(a.d.GraphExecDestroy(x));
    a(a.d.GraphExecDestroy(x));
  });
  ask.Plain("graph.instantiate_bad_flags", "INVALID_VALUE",
            [](Ready& a, const TwoNodes& two) { a(a.d.GraphInstantiateWithFlags(kIgnored, two.g, 0x1000)); });
  ask.Risky("graph.host_node_null", "INVALID_VALUE", [](Ready& a) {
    const CUgraph g = a.GraphCreate();
    const CUDA_HOST_NODE_PARAMS host{nullptr, nullptr};
    a(a.d.GraphAddHostNode(kIgnored, g, nullptr, 0, &host));
  });
  ask.Plain("graph.update_same", "SUCCESS 0", [](Ready& a, const TwoNodes& two) {
    CUgraphExecUpdateResultInfo info{};
    const CUgraphExec x = a.GraphInstantiate(two.g);
    a(a.d.GraphExecUpdate(x, two.g, &info), info.result);
  });
  ask.Plain("graph.update_topology", "GRAPH_EXEC_UPDATE_FAILURE 2", [](Ready& a, const TwoNodes& two) {
    CUgraphExecUpdateResultInfo info{};
    const CUgraphExec x = a.GraphInstantiate(two.g);
    a.GraphAddEmptyNode(two.g);
    a(a.d.GraphExecUpdate(x, two.g, &info), info.result);
  });
  ask.Risky("graph.child", "SUCCESS SUCCESS 1 INVALID_VALUE", [](Ready& a, const TwoNodes& two) {
    CUgraph inner = nullptr;
    CUgraphNode q = nullptr;
    const CUgraph h = a.GraphCreate();
    a(a.d.GraphAddChildGraphNode(&q, h, nullptr, 0, two.g));
    a(a.d.GraphChildGraphNodeGetGraph(q, &inner));
    a.Value(inner != two.g);
    a(a.d.GraphDestroy(inner));
  });
  ask.Plain("graph.cycle_instantiate", "SUCCESS INVALID_VALUE", [](Ready& a, const TwoNodes& two) {
    a(a.d.GraphAddDependencies(two.g, &two.o, &two.n, nullptr, 1));
    a(a.d.GraphInstantiateWithFlags(kIgnored, two.g, 0));
  });
  ask.Plain("graph.self_edge", "INVALID_VALUE", [](Ready& a) {
    const CUgraph g = a.GraphCreate();
    CUgraphNode n = a.GraphAddEmptyNode(g);
    a(a.d.GraphAddDependencies(g, &n, &n, nullptr, 1));
  });
  // A graph as a child of a graph that lies within it.
  ask.Risky("graph.child_of_what_it_holds", "crash", [](Ready& a) {
    CUgraph within = nullptr;
    CUgraphNode n = nullptr;
    std::size_t nodes = 0;
    const CUgraph outer = a.GraphCreate(), inner = a.GraphCreate();
    a.Prepare(a.d.GraphAddChildGraphNode(&n, outer, nullptr, 0, inner));
    a.Prepare(a.d.GraphChildGraphNodeGetGraph(n, &within));
    a(a.d.GraphAddChildGraphNode(&n, within, nullptr, 0, outer));
    a(a.d.GraphGetNodes(within, nullptr, &nodes), nodes);
  });
#if CUDA_VERSION >= 13000
  ask.Risky("graph.moved_into_what_it_holds", "SUCCESS", [](Ready& a) {
    CUgraph within = nullptr;
    CUgraphNode n = nullptr;
    const CUgraph outer = a.GraphCreate(), inner = a.GraphCreate();
    a.Prepare(a.d.GraphAddChildGraphNode(&n, outer, nullptr, 0, inner));
    a.Prepare(a.d.GraphChildGraphNodeGetGraph(n, &within));
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_GRAPH;
    node.graph.graph = outer;
    node.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    a(a.d.GraphAddNode(&n, within, nullptr, nullptr, 0, &node));
  });
#endif
  ask.Risky("graph.destroy_null", "INVALID_VALUE", [](Ready& a) { a(a.d.GraphDestroy(nullptr)); });
  ask.Risky("graph.exec_destroy_null", "INVALID_VALUE", [](Ready& a) { a(a.d.GraphExecDestroy(nullptr)); });
  ask.Risky("graph.launch_destroyed", "SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUgraph g = a.GraphCreate();
    a.GraphAddEmptyNode(g);
    const CUgraphExec x = a.GraphInstantiate(g);
    a(a.d.GraphExecDestroy(x));
    a(a.d.GraphLaunch(x, nullptr));
  });
  ask.Plain("graph.exec_destroy_in_flight", "SUCCESS x3", [](Ready& a) {
    CUgraphExec x = nullptr;
    const CUgraph g = a.GraphCreate();
    a.GraphAddEmptyNode(g);
    a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
    a(a.d.GraphLaunch(x, nullptr));
    a(a.d.GraphExecDestroy(x));
    a(a.d.StreamSynchronize(nullptr));
  });
  ask.Risky("graph.node_of_destroyed", "SUCCESS", [](Ready& a) {
    const CUgraph g = a.GraphCreate();
    const CUgraphNode n = a.GraphAddEmptyNode(g);
    a.Prepare(a.d.GraphDestroy(g));
    a(a.d.GraphNodeGetType(n, kIgnored));
  });
  ask.Risky("graph.destroy_node_twice", "SUCCESS crash", [](Ready& a) {
    const CUgraph g = a.GraphCreate();
    const CUgraphNode n = a.GraphAddEmptyNode(g);
    a(a.d.GraphDestroyNode(n));
    a(a.d.GraphDestroyNode(n));
  });
  ask.Plain("graph.clone_outlives", "SUCCESS x3", [](Ready& a) {
    CUgraph g = nullptr;
    a.Prepare(a.d.GraphCreate(&g, 0));
    a.GraphAddEmptyNode(g);
    CUgraph clone = nullptr;
    a(a.d.GraphClone(&clone, g));
    a(a.d.GraphDestroy(g));
    a(a.d.GraphDestroy(clone));
  });
  ask.Plain("graph.empty_launch", "SUCCESS x3", [](Ready& a) {
    CUgraphExec x = nullptr;
    const CUgraph g = a.GraphCreate();
    a(a.d.GraphInstantiateWithFlags(&x, g, 0));
    a(a.d.GraphLaunch(x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    (void)a.d.GraphExecDestroy(x);
  });
  ask.Plain("graph.alloc_node", "SUCCESS 1", [](Ready& a) {
    const CUgraph g = a.GraphCreate();
    a.GraphAddEmptyNode(g);
    CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
    wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    wanted.bytesize = 1024;
    a(a.d.GraphAddMemAllocNode(kIgnored, g, nullptr, 0, &wanted));
    a.Value(wanted.dptr != 0);
  });
  ask.Plain("user_object.release_destroys", "SUCCESS 1", [](Ready& a, const UserObject& o) {
    a(a.d.UserObjectRelease(o.u, 1));
    o.DiedAtLast();
  });
  ask.Plain("user_object.bad_arguments", "INVALID_VALUE x3", [](Ready& a) {
    int died = 0;
    CUuserObject u = nullptr;
    a(a.d.UserObjectCreate(&u, &died, Bump, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    a(a.d.UserObjectCreate(&u, &died, Bump, 1, 0));
    a(a.d.UserObjectCreate(&u, &died, nullptr, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  });
  ask.Risky("user_object.over_release", "SUCCESS", [](Ready& a, const UserObject& o) { a(a.d.UserObjectRelease(o.u, 2)); });
  ask.Plain("user_object.graph_keeps", "SUCCESS SUCCESS 0 SUCCESS 1", [](Ready& a, const UserObject& o) {
    a(a.d.GraphRetainUserObject(o.g, o.u, 1, 0));
    a(a.d.UserObjectRelease(o.u, 1));
    o.Died();
    a(a.d.GraphDestroy(o.g));
    o.DiedAtLast();
  });
  ask.Plain("user_object.move", "SUCCESS SUCCESS 1", [](Ready& a, const UserObject& o) {
    a(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a(a.d.GraphDestroy(o.g));
    o.DiedAtLast();
  });
  ask.Plain("user_object.graph_release", "SUCCESS 1", [](Ready& a, const UserObject& o) {
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a(a.d.GraphReleaseUserObject(o.g, o.u, 1));
    o.DiedAtLast();
    (void)a.d.GraphDestroy(o.g);
  });
  ask.Plain("user_object.clone_keeps", "0 1", [](Ready& a, const UserObject& o) {
    CUgraph h = nullptr;
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a.Prepare(a.d.GraphClone(&h, o.g));
    a.Prepare(a.d.GraphDestroy(o.g));
    o.Died();
    a.Prepare(a.d.GraphDestroy(h));
    o.DiedAtLast();
  });
  ask.Plain("user_object.executable_keeps", "0 1", [](Ready& a, const UserObject& o) {
    CUgraphExec x = nullptr;
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a.Prepare(a.d.GraphInstantiateWithFlags(&x, o.g, 0));
    a.Prepare(a.d.GraphDestroy(o.g));
    o.Died();
    a.Prepare(a.d.GraphExecDestroy(x));
    o.DiedAtLast();
  });
  ask.Plain("user_object.after_launch", "0 SUCCESS SUCCESS 1", [](Ready& a, const UserObject& o) {
    CUgraphExec x = nullptr;
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a.Prepare(a.d.GraphInstantiateWithFlags(&x, o.g, 0));
    a.Prepare(a.d.GraphDestroy(o.g));
    a.Prepare(a.d.GraphLaunch(x, nullptr));
    o.Died();
    a(a.d.GraphExecDestroy(x));
    a(a.d.StreamSynchronize(nullptr));
    o.DiedAtLast();
  });
  ask.Plain("user_object.graph_then_executable", "0 0 1", [](Ready& a, const UserObject& o) {
    CUgraphExec x = nullptr;
    a.Prepare(a.d.GraphRetainUserObject(o.g, o.u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a.Prepare(a.d.GraphInstantiateWithFlags(&x, o.g, 0));
    a.Prepare(a.d.GraphExecDestroy(x));
    o.Died();
    a.Prepare(a.d.GraphInstantiateWithFlags(&x, o.g, 0));
    a.Prepare(a.d.GraphDestroy(o.g));
    o.Died();
    a.Prepare(a.d.GraphExecDestroy(x));
    o.DiedAtLast();
  });
  ask.Plain("user_object.zero_counts", "INVALID_VALUE x4", [](Ready& a, const UserObject& o) {
    a(a.d.UserObjectRetain(o.u, 0));
    a(a.d.UserObjectRelease(o.u, 0));
    a(a.d.GraphRetainUserObject(o.g, o.u, 0, 0));
    a(a.d.GraphReleaseUserObject(o.g, o.u, 0));
    o.Release();
  });
  ask.Plain("user_object.bad_retain_flags", "INVALID_VALUE", [](Ready& a, const UserObject& o) {
    a(a.d.GraphRetainUserObject(o.g, o.u, 1, 0x10));
    o.Release();
  });
  ask.Risky("user_object.graph_holds_none", "SUCCESS", [](Ready& a, const UserObject& o) { a(a.d.GraphReleaseUserObject(o.g, o.u, 1)); });
  ask.Risky("user_object.graph_over_release", "SUCCESS SUCCESS", [](Ready& a, const UserObject& o) {
    a(a.d.GraphRetainUserObject(o.g, o.u, 1, 0));
    a(a.d.GraphReleaseUserObject(o.g, o.u, 2));
  });
  ask.Risky("user_object.release_after_death", "SUCCESS SUCCESS", [](Ready& a, const UserObject& o) {
    a(a.d.UserObjectRelease(o.u, 1));
    a(a.d.UserObjectRelease(o.u, 1));
  });
}

}  // namespace cuaudit::contract::graph_questions
