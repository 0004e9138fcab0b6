// SPDX-License-Identifier: MIT
// Edges of graphs, in all versions of the calls.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/memory_node.h"
#include "faults/sim/graph/node.h"

namespace cuaudit::sim {
namespace {

bool IsPlain(const CUgraphEdgeData& edge) { return edge.from_port == 0 && edge.to_port == 0 && edge.type == 0; }

// Where the results of a query go. Without room for what annotates an edge, an annotated one is a lossy answer.
struct Query {
  CUgraphNode* from;
  CUgraphNode* to;
  CUgraphEdgeData* edges;
  std::size_t room;
  std::size_t found = 0;
  bool lossy = false;

  void Add(const Node* first, const Node* second, const CUgraphEdgeData& edge) {
    if (found < room) {
      if (from != nullptr) from[found] = ToHandle<CUgraphNode>(first);
      if (to != nullptr) to[found] = ToHandle<CUgraphNode>(second);
      if (edges != nullptr) edges[found] = edge;
      if (edges == nullptr && (from != nullptr || to != nullptr) && !IsPlain(edge)) lossy = true;
    }
    ++found;
  }
  CUresult Finish(std::size_t* count) {
    if (lossy) return CUDA_ERROR_LOSSY_QUERY;
    const bool lists = from != nullptr || to != nullptr;
    for (std::size_t i = found; lists && i < room; ++i) {
      if (from != nullptr) from[i] = nullptr;
      if (to != nullptr) to[i] = nullptr;
      if (edges != nullptr) edges[i] = {};
    }
    *count = lists && found > room ? room : found;
    return CUDA_SUCCESS;
  }
};

const CUgraphEdgeData& EdgeBetween(const Node* first, const Node* second) {
  std::size_t i = 0;
  while (second->dependencies[i] != first) ++i;
  return second->edges[i];
}

CUresult FindPair(World& world, const Graph* graph, CUgraphNode from, CUgraphNode to, Node** first, Node** second) {
  *first = world.Find<Node>(from);
  *second = world.Find<Node>(to);
  const bool good = *first != nullptr && *second != nullptr && (*first)->graph == graph && (*second)->graph == graph && *first != *second;
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// A cycle is taken, as drivers do: instantiation refuses it.
CUresult AddEdges(Call& call, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edges,
                  std::size_t count) {
  Graph* const graph = call.world.Find<Graph>(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (count == 0) return CUDA_SUCCESS;
  if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    Node* first = nullptr;
    Node* second = nullptr;
    if (FindPair(call.world, graph, from[i], to[i], &first, &second) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    const CUgraphEdgeData edge = edges == nullptr ? CUgraphEdgeData{} : edges[i];
    if (second->dependencies.Contains(first) || !MayAnnotate(first->type, second->type, edge)) return CUDA_ERROR_INVALID_VALUE;
    if (!Link(call.world, first, second, edge)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::GraphGetEdges(Call& call, CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return GraphGetEdges_v2(call, graph, from, to, nullptr, count);
}

CUresult api::GraphGetEdges_v2(Call& call, CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges, std::size_t* count) {
  const Graph* const graph = call.world.Find<Graph>(handle);
  if (graph == nullptr || count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Query query{from, to, edges, *count};
  for (const Node* const node : graph->nodes) {
    for (const Node* const next : node->dependents) query.Add(node, next, EdgeBetween(node, next));
  }
  return query.Finish(count);
}

CUresult api::GraphNodeGetDependencies(Call& call, CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return GraphNodeGetDependencies_v2(call, node, nodes, nullptr, count);
}

CUresult api::GraphNodeGetDependencies_v2(Call& call, CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* edges, std::size_t* count) {
  const Node* const node = call.world.Find<Node>(handle);
  if (node == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Query query{nodes, nullptr, edges, *count};
  for (std::size_t i = 0; i < node->dependencies.size(); ++i) query.Add(node->dependencies[i], node, node->edges[i]);
  return query.Finish(count);
}

CUresult api::GraphNodeGetDependentNodes(Call& call, CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return GraphNodeGetDependentNodes_v2(call, node, nodes, nullptr, count);
}

CUresult api::GraphNodeGetDependentNodes_v2(Call& call, CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                            std::size_t* count) {
  const Node* const node = call.world.Find<Node>(handle);
  if (node == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Query query{nullptr, nodes, edges, *count};
  for (const Node* const next : node->dependents) query.Add(node, next, EdgeBetween(node, next));
  return query.Finish(count);
}

CUresult api::GraphAddDependencies(Call& call, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  return AddEdges(call, graph, from, to, nullptr, count);
}

CUresult api::GraphAddDependencies_v2(Call& call, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* edges, std::size_t count) {
  return AddEdges(call, graph, from, to, edges, count);
}

CUresult api::GraphRemoveDependencies(Call& call, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  const Graph* const graph = call.world.Find<Graph>(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (count == 0) return CUDA_SUCCESS;
  if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (OwnsMemory(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  for (std::size_t i = 0; i < count; ++i) {
    Node* first = nullptr;
    Node* second = nullptr;
    if (FindPair(call.world, graph, from[i], to[i], &first, &second) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    if (!Unlink(first, second)) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// What annotates the edge is no part of its name.
CUresult api::GraphRemoveDependencies_v2(Call& call, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
                                         std::size_t count) {
  return GraphRemoveDependencies(call, handle, from, to, count);
}

}  // namespace cuaudit::sim
