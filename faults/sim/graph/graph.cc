// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/graph/graph.h"

#include "faults/sim/kernel/launch.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {
Graph* MakeGraph(World& world, bool counted) noexcept { return world.Make<Graph>(nullptr, counted); }

void DestroyNode(World& world, Node* node) noexcept {
  while (!node->dependencies.empty()) Unlink(node->dependencies[0], node);
  while (!node->dependents.empty()) Unlink(node, node->dependents[0]);
  node->dependencies.Clear(world.arena);
  node->edges.Clear(world.arena);
  node->attributes.Clear(world.arena);
  node->dependents.Clear(world.arena);
  if (node->work.type == WorkType::Alloc && node->work.memory != nullptr) node->work.memory->graph = nullptr;
  DropArguments(world, node->work);
  node->graph->nodes.EraseValue(node);
  if (node->work.type == WorkType::Child) DestroyGraph(world, node->work.child);
  if (node->work.type == WorkType::Conditional) {
    if (Conditional* const handle = world.Find<Conditional>(node->work.conditional.handle); handle != nullptr) handle->node = nullptr;
    FreeBodies(world, node->work.conditional);
  }
  const std::uint64_t handle = node->handle;
  const auto note = static_cast<std::uint8_t>(node->type + 1);
  world.Destroy(node);
  world.handles.LeaveNote(handle, note);
}

void FreeBodies(World& world, const CUDA_CONDITIONAL_NODE_PARAMS& work) noexcept {
  for (unsigned i = 0; i < work.size; ++i) {
    Graph* const body = world.Find<Graph>(work.phGraph_out[i]);
    if (body != nullptr) DestroyGraph(world, body);
  }
  world.arena.Free(work.phGraph_out, work.size * sizeof(CUgraph));
}

void DestroyGraph(World& world, Graph* graph) noexcept {
  while (!graph->nodes.empty()) {
    DestroyNode(world, graph->nodes[graph->nodes.size() - 1]);
  }
  graph->nodes.Clear(world.arena);
  for (Conditional* const conditional : graph->conditionals) world.Destroy(conditional);
  graph->conditionals.Clear(world.arena);
  LetGo(world, &graph->holdings);
  world.Destroy(graph);
}

bool Link(World& world, Node* from, Node* to, const CUgraphEdgeData& edge) noexcept {
  if (!to->dependencies.Push(world.arena, from)) return false;
  if (to->edges.Push(world.arena, edge)) {
    if (from->dependents.Push(world.arena, to)) return true;
    to->edges.Truncate(to->edges.size() - 1);
  }
  to->dependencies.Truncate(to->dependencies.size() - 1);
  return false;
}

bool Unlink(Node* from, Node* to) noexcept {
  for (std::size_t i = 0; i < to->dependencies.size(); ++i) {
    if (to->dependencies[i] != from) continue;
    to->dependencies.Erase(i);
    to->edges.Erase(i);
    from->dependents.EraseValue(to);
    return true;
  }
  return false;
}

bool SetNodeWork(World& world, Node* node, const Work& work) noexcept {
  Work copy = work;
  copy.cooperative = node->work.cooperative;
  if (work.type == WorkType::Kernel && !CopyArguments(world, KernelSymbol(world, work.kernel), &copy)) return false;
  DropArguments(world, node->work);
  node->work = copy;
  return true;
}

Node* AddNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUgraphNodeType type, const Work& work) noexcept {
  // First, since the graph may lie within what is cloned.
  Graph* const child = type == CU_GRAPH_NODE_TYPE_GRAPH ? CloneGraph(world, work.child, false) : nullptr;
  if (type == CU_GRAPH_NODE_TYPE_GRAPH && child == nullptr) return nullptr;
  Node* const node = world.Make<Node>(nullptr);
  if (node == nullptr) {
    if (child != nullptr) DestroyGraph(world, child);
    return nullptr;
  }
  if (child != nullptr) {
    node->work = work;
    node->work.child = child;
    child->parent = node;
  }
  node->graph = graph;
  node->added = Origin(world);
  node->type = type;
  if (type != CU_GRAPH_NODE_TYPE_GRAPH && type != CU_GRAPH_NODE_TYPE_CONDITIONAL) node->work = work;  // what it would own comes last
  ShareArguments(node->work);
  bool good = graph->nodes.Push(world.arena, node);
  for (std::size_t i = 0; good && i < count; ++i) good = Link(world, dependencies[i], node);
  if (good && type == CU_GRAPH_NODE_TYPE_KERNEL && work.arguments == nullptr) good = SetNodeWork(world, node, work);
  if (good && type == CU_GRAPH_NODE_TYPE_CONDITIONAL) node->work = work;
  if (good) return node;
  DestroyNode(world, node);
  return nullptr;
}

// What the graph itself holds, held once more.
static bool HoldOwn(World& world, const Graph* graph, Vector<Holding>* holdings) {
  for (const Holding& holding : graph->holdings) {
    UserObject* const object = world.Find<UserObject>(holding.object);
    if (object != nullptr && !Hold(world, holdings, object, holding.count)) return false;
  }
  return true;
}

Graph* CloneGraph(World& world, const Graph* graph, bool counted) noexcept {
  Graph* const clone = MakeGraph(world, counted);
  if (clone == nullptr) return nullptr;
  clone->origin_handle = graph->handle;
  bool good = true;
  for (std::size_t i = 0; good && i < graph->nodes.size(); ++i) {
    const Node* const node = graph->nodes[i];
    Node* const copy = AddNode(world, clone, nullptr, 0, node->type, node->work);
    good = copy != nullptr;
    if (!good) break;
    good = copy->attributes.Assign(world.arena, node->attributes.begin(), node->attributes.size());
    copy->origin_handle = node->handle;
    copy->added = node->added;
    copy->updatable = node->updatable;
  }
  for (std::size_t i = 0; good && i < graph->nodes.size(); ++i) {
    for (std::size_t k = 0; good && k < graph->nodes[i]->dependencies.size(); ++k) {
      for (Node* const earlier : clone->nodes) {
        if (earlier->origin_handle == graph->nodes[i]->dependencies[k]->handle)
          good = Link(world, earlier, clone->nodes[i], graph->nodes[i]->edges[k]);
      }
    }
  }
  good = good && HoldOwn(world, graph, &clone->holdings);
  if (good) return clone;
  DestroyGraph(world, clone);
  return nullptr;
}

CUresult SortNodes(World& world, Graph* graph, Vector<Node*>* sorted) noexcept {
  for (Node* const node : graph->nodes) node->mark = static_cast<std::uint32_t>(node->dependencies.size());
  for (Node* const node : graph->nodes) {
    if (node->mark == 0 && !sorted->Push(world.arena, node)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (std::size_t i = 0; i < sorted->size(); ++i) {
    for (Node* const next : (*sorted)[i]->dependents) {
      if (--next->mark == 0 && !sorted->Push(world.arena, next)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  return sorted->size() == graph->nodes.size() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

const Node* NodeInCycle(World& world, Graph* graph) noexcept {
  Vector<Node*> sorted;
  (void)SortNodes(world, graph, &sorted);
  const Node* found = nullptr;
  for (const Node* const node : graph->nodes) {
    if (found == nullptr && node->mark != 0) found = node;
  }
  sorted.Clear(world.arena);
  return found;
}

bool HoldAll(World& world, const Graph* graph, Vector<Holding>* holdings) noexcept {
  if (!HoldOwn(world, graph, holdings)) return false;
  for (const Node* const node : graph->nodes) {
    if (node->work.type == WorkType::Child && !HoldAll(world, node->work.child, holdings)) return false;
  }
  return true;
}

bool DependsOn(World& world, const Node* later, const Node* earlier) noexcept {
  Vector<const Node*> open;
  for (Node* const node : later->graph->nodes) node->mark = 0;
  bool found = later == earlier;
  bool good = open.Push(world.arena, later);
  for (std::size_t i = 0; good && !found && i < open.size(); ++i) {
    for (Node* const node : open[i]->dependencies) {
      if (node->mark != 0) continue;
      node->mark = 1;
      found = found || node == earlier;
      good = good && open.Push(world.arena, node);
    }
  }
  open.Clear(world.arena);
  return found;
}

bool Hold(World& world, Vector<Holding>* holdings, UserObject* object, std::uint64_t count) noexcept {
  for (Holding& holding : *holdings) {
    if (holding.object != object->handle) continue;
    holding.count += count;
    object->references += count;
    return true;
  }
  if (!holdings->Push(world.arena, Holding{object->handle, count})) return false;
  object->references += count;
  return true;
}

void ReleaseReferences(World& world, UserObject* object, std::uint64_t count) noexcept {
  object->references -= count < object->references ? count : object->references;
  if (object->references != 0) return;
  (void)world.farewells.Push(world.arena, Farewell{object->destroy, object->argument});
  world.Destroy(object);
}

void LetGo(World& world, Vector<Holding>* holdings) noexcept {
  for (const Holding& holding : *holdings) {
    UserObject* const object = world.Find<UserObject>(holding.object);
    if (object != nullptr) ReleaseReferences(world, object, holding.count);
  }
  holdings->Clear(world.arena);
}

}  // namespace cuaudit::sim
