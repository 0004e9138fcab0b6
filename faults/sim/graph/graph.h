// SPDX-License-Identifier: MIT
// graph.h: graphs, their nodes, executable graphs, and the user objects that they keep alive.
//
//   Owns      a graph owns its nodes, child graphs and references to user objects; an executable graph owns its plan and its references.
//   Threads   the caller holds the world's lock. Dropping the last reference to a user object queues its destructor for the end of the
//             call.
//   Errors    nullptr or false when the world's arena is full.
//   Source    CUDA Driver API 13.0, Graph Management.
#pragma once

#include "faults/sim/state/call.h"
#include "faults/sim/state/work.h"

namespace cuaudit::sim {

struct UserObject : Object {
  static constexpr Tag kTag = Tag::UserObject;
  CUhostFn destroy = nullptr;
  void* argument = nullptr;
  std::uint64_t references = 0;
  std::uint64_t client_references = 0;  // the part of them that cuUserObjectRelease may give back
  bool taken = false;                   // a reference that one graph holds was released for another graph
};

// Holds the object by handle, because releasing more references than the caller has destroys the object under its other holders.
struct Holding {
  std::uint64_t object;
  std::uint64_t count;
};

struct Conditional;
struct Plan;

struct Node : Object {
  static constexpr Tag kTag = Tag::Node;
  Graph* graph = nullptr;
  Node* origin = nullptr;  // of a clone: the node it was cloned from; compared by handle, never followed
  std::uint64_t origin_handle = 0;
  std::uint64_t added = 0;  // id of the call that added the node (WorldOptions::origin)
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Work work;
  Vector<Node*> dependencies;
  Vector<Node*> dependents;
  Vector<CUgraphEdgeData> edges;         // parallel to `dependencies`
  Vector<CUlaunchAttribute> attributes;  // of a kernel node
  bool updatable = false;                // device code may change its parameters; never unset
  std::uint32_t mark = 0;                // scratch value of graph walks
  std::uint32_t place = 0;               // index of its step in the plan that is being made
};

struct Graph : Object {
  static constexpr Tag kTag = Tag::Graph;
  Vector<Node*> nodes;
  Vector<Holding> holdings;
  Vector<Conditional*> conditionals;
  Node* parent = nullptr;  // of a child graph or a conditional body: the node that owns it
  // True for a graph that was moved or copied into a child-graph node. It may be read, changed and cloned, but not instantiated or added to
  // another graph (suites/contract, questions graph_child.*).
  bool IsChild() const { return parent != nullptr && parent->type == CU_GRAPH_NODE_TYPE_GRAPH; }
  bool capturing = false;
  std::uint64_t executable = 0;     // handle of the only executable that a graph with memory or conditional nodes may have
  std::uint64_t origin_handle = 0;  // of a clone: the graph it was cloned from
};

// A conditional handle (node.h).
struct Conditional : Object {
  static constexpr Tag kTag = Tag::Conditional;
  Graph* graph = nullptr;
  Context* context = nullptr;
  unsigned value = 0;  // default at the start of a launch, if `flags` says so
  unsigned flags = 0;
  Node* node = nullptr;
};

struct Executable : Object {
  static constexpr Tag kTag = Tag::Executable;
  std::uint64_t flags = 0;
  std::uint32_t in_flight = 0;
  bool destroyed = false;
  bool updatable = false;  // one of its nodes is updatable from device code
  Plan* plan = nullptr;
  Marker* last = nullptr;  // the end of its last launch; the next launch waits for it in any stream
  Vector<Holding> holdings;
  Vector<Holding> former;  // replaced by an update while launches were in flight; released when the last of them is done
};

Graph* MakeGraph(World& world, bool counted) noexcept;
void DestroyGraph(World& world, Graph* graph) noexcept;
void DestroyNode(World& world, Node* node) noexcept;
// Destroys the bodies of a conditional node.
void FreeBodies(World& world, const CUDA_CONDITIONAL_NODE_PARAMS& work) noexcept;
Graph* CloneGraph(World& world, const Graph* graph, bool counted) noexcept;

// Adds a node with these dependencies, which belong to the graph. nullptr when the arena is full.
Node* AddNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUgraphNodeType type, const Work& work) noexcept;
bool Link(World& world, Node* from, Node* to, const CUgraphEdgeData& edge = {}) noexcept;
bool Unlink(Node* from, Node* to) noexcept;  // false: there is no such edge
// Replaces a node's parameters and copies a kernel's arguments.
bool SetNodeWork(World& world, Node* node, const Work& work) noexcept;
// A node that no topological order can place, because it is in or behind a cycle.
const Node* NodeInCycle(World& world, Graph* graph) noexcept;
// Appends the graph's nodes in topological order. INVALID_VALUE: the graph has a cycle.
CUresult SortNodes(World& world, Graph* graph, Vector<Node*>* sorted) noexcept;
// Adds a reference to every user object that the graph and its child graphs hold.
bool HoldAll(World& world, const Graph* graph, Vector<Holding>* holdings) noexcept;
bool DependsOn(World& world, const Node* later, const Node* earlier) noexcept;

bool Hold(World& world, Vector<Holding>* holdings, UserObject* object, std::uint64_t count) noexcept;
void LetGo(World& world, Vector<Holding>* holdings) noexcept;
void ReleaseReferences(World& world, UserObject* object, std::uint64_t count) noexcept;

}  // namespace cuaudit::sim
