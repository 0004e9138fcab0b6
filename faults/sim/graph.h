// SPDX-License-Identifier: MIT
// graph.h: graphs, their nodes, executable graphs and the user objects they keep alive.
//
//   Owns      a graph its nodes, its child graphs and its references of user objects; an executable graph its plan and references.
//   Threads   the world's lock is held by every caller.
//   Errors    nullptr or false when the books are full.
//   Faults    makes no driver calls. The last reference of a user object queues its destructor for the end of the call.
//   Source    CUDA Driver API 13.0, Graph Management.
#pragma once

#include "faults/sim/call.h"
#include "faults/sim/work.h"

namespace cuaudit::sim {

struct UserObject : Object {
  static constexpr Tag kTag = Tag::UserObject;
  CUhostFn destroy = nullptr;
  void* argument = nullptr;
  std::uint64_t references = 0;
  std::uint64_t client_references = 0;  // of them, those that cuUserObjectRelease may give back
};

// By handle: who gives back more references than it holds ends the object under those that hold it.
struct Holding {
  std::uint64_t object;
  std::uint64_t count;
};

struct Conditional;
struct Plan;

struct Node : Object {
  static constexpr Tag kTag = Tag::Node;
  Graph* graph = nullptr;
  Node* origin = nullptr;  // of a clone: the node it was cloned from, compared by handle only
  std::uint64_t origin_handle = 0;
  std::uint64_t added = 0;  // the call that added it, as the world's observer names it
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Work work;
  Vector<Node*> dependencies;
  Vector<Node*> dependents;
  Vector<CUgraphEdgeData> edges;         // beside the dependencies
  Vector<CUlaunchAttribute> attributes;  // of a kernel node
  bool updatable = false;                // a kernel may change its parameters; for good
  std::uint32_t mark = 0;                // of a walk
  std::uint32_t place = 0;               // its step in the plan that is being made
};

struct Graph : Object {
  static constexpr Tag kTag = Tag::Graph;
  Vector<Node*> nodes;
  Vector<Holding> holdings;
  Vector<Conditional*> conditionals;
  Node* parent = nullptr;  // of a child graph or a body: the node that owns it
  // Moved into a node, or the copy in one: it may be looked at, changed and cloned, and not be used by itself (graph_child.*).
  bool IsChild() const { return parent != nullptr && parent->type == CU_GRAPH_NODE_TYPE_GRAPH; }
  bool capturing = false;
  std::uint64_t executable = 0;     // the only one that a graph of memory or conditional nodes may have
  std::uint64_t origin_handle = 0;  // of a clone: the graph it was cloned from
};

struct Executable : Object {
  static constexpr Tag kTag = Tag::Executable;
  std::uint64_t flags = 0;
  std::uint32_t in_flight = 0;
  bool destroyed = false;
  bool updatable = false;  // one of its nodes is
  Plan* plan = nullptr;
  Marker* last = nullptr;  // the end of its last launch, which the next waits for in whatever stream
  Vector<Holding> holdings;
  Vector<Holding> former;  // what an update replaced while launches were under way: let go when the last of them is done
};

Graph* MakeGraph(World& world, bool counted) noexcept;
void DestroyGraph(World& world, Graph* graph) noexcept;
void DestroyNode(World& world, Node* node) noexcept;
Graph* CloneGraph(World& world, const Graph* graph, bool counted) noexcept;

// Adds a node behind `dependencies`, which belong to the graph. nullptr when the books are full.
Node* AddNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUgraphNodeType type, const Work& work) noexcept;
bool Link(World& world, Node* from, Node* to, const CUgraphEdgeData& edge = {}) noexcept;
bool Unlink(Node* from, Node* to) noexcept;  // false: there is no such edge
// Replaces a node's parameters; a kernel's arguments are copied.
bool SetNodeWork(World& world, Node* node, const Work& work) noexcept;
// Appends the graph's nodes in an order in which each comes after its dependencies; INVALID_VALUE: there is a cycle.
// A node that no order can place.
const Node* NodeInCycle(World& world, Graph* graph) noexcept;
CUresult SortNodes(World& world, Graph* graph, Vector<Node*>* sorted) noexcept;
// References of the user objects that the graph and its child graphs hold.
bool HoldAll(World& world, const Graph* graph, Vector<Holding>* holdings) noexcept;
bool DependsOn(World& world, const Node* later, const Node* earlier) noexcept;

bool Hold(World& world, Vector<Holding>* holdings, UserObject* object, std::uint64_t count) noexcept;
void LetGo(World& world, Vector<Holding>* holdings) noexcept;
void ReleaseReferences(World& world, UserObject* object, std::uint64_t count) noexcept;
void FreeExecutable(World& world, Executable* executable) noexcept;

}  // namespace cuaudit::sim
