// SPDX-License-Identifier: MIT
// Edges of graphs, in all versions of the calls, and kernel nodes.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/memory_node.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/kernel/launch.h"

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
  const bool gone = node == nullptr && call.world.Destroyed(handle);  // as a device says, no error
  if ((node == nullptr && !gone) || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Query query{nodes, nullptr, edges, *count};
  for (std::size_t i = 0; !gone && i < node->dependencies.size(); ++i) query.Add(node->dependencies[i], node, node->edges[i]);
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

// Attributes of kernel nodes.

namespace {

// Attributes that a kernel node keeps, by their numbers: some have no name in older toolkits.
bool IsKept(unsigned id) {
  constexpr unsigned kKept = 1U << 1 | 1U << 2 | 1U << 4 | 1U << 5 | 1U << 8 | 1U << 9 | 1U << 10 | 1U << 11 | 1U << 13 | 1U << 14;
  return id < 32 && (kKept >> id & 1U) != 0;
}

Node* FindKernel(Call& call, CUgraphNode handle) { return FindNode(call, handle, CU_GRAPH_NODE_TYPE_KERNEL); }

const CUlaunchAttribute* Kept(const Node* node, CUlaunchAttributeID id) {
  for (const CUlaunchAttribute& attribute : node->attributes) {
    if (attribute.id == id) return &attribute;
  }
  return nullptr;
}

bool Keep(World& world, Node* node, CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) node->work.cooperative = value.cooperative != 0;
  for (CUlaunchAttribute& attribute : node->attributes) {
    if (attribute.id != id) continue;
    attribute.value = value;
    return true;
  }
  CUlaunchAttribute attribute{};
  attribute.id = id;
  attribute.value = value;
  return node->attributes.Push(world.arena, attribute);
}

}  // namespace

CUresult api::GraphKernelNodeGetAttribute(Call& call, CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue* value) {
  const Node* const node = FindKernel(call, handle);
  if (node == nullptr || value == nullptr || !IsKept(static_cast<unsigned>(id))) return CUDA_ERROR_INVALID_VALUE;
  const CUlaunchAttribute* const kept = Kept(node, id);
  if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
    *value = CUlaunchAttributeValue{};
    value->deviceUpdatableKernelNode = {node->updatable ? 1 : 0, node->updatable ? ToHandle<CUgraphDeviceNode>(node) : nullptr};
  } else if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
    value->cooperative = node->work.cooperative ? 1 : 0;
  } else if (kept != nullptr) {
    *value = kept->value;
  } else {
    *value = CUlaunchAttributeValue{};
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value->memSyncDomainMap.remote = 1;
  }
  return CUDA_SUCCESS;
}

CUresult api::GraphKernelNodeSetAttribute(Call& call, CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue* value) {
  Node* const node = FindKernel(call, handle);
  if (node == nullptr || value == nullptr || !IsKept(static_cast<unsigned>(id))) return CUDA_ERROR_INVALID_VALUE;
  if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    const CUresult result = CheckCluster(call, node->work.kernel, *value);
    if (result != CUDA_SUCCESS) return result;
  }
  if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) return SetUpdatable(node, const_cast<CUkernelNodeAttrValue*>(value));
  return Keep(call.world, node, id, *value) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult api::GraphKernelNodeCopyAttributes(Call& call, CUgraphNode to_handle, CUgraphNode from_handle) {
  Node* const to = FindKernel(call, to_handle);
  const Node* const from = FindKernel(call, from_handle);
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (to->updatable || from->updatable) return CUDA_ERROR_INVALID_VALUE;
  if (to == from) return CUDA_SUCCESS;
  to->work.cooperative = from->work.cooperative;
  return to->attributes.Assign(call.world.arena, from->attributes.begin(), from->attributes.size()) ? CUDA_SUCCESS
                                                                                                    : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace cuaudit::sim
