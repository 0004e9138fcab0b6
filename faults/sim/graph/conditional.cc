// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/graph/conditional.h"

namespace cuaudit::sim {
namespace {

constexpr int kIf = 0;
constexpr int kWhile = 1;
constexpr int kSwitch = 2;
constexpr unsigned kMostBodies = 1U << 16;

bool IsInside(const Graph* graph, const Graph* outer) {
  while (graph != outer && graph->parent != nullptr) graph = graph->parent->graph;
  return graph == outer;
}

bool GoodSize(int type, unsigned size) {
  if (type == kIf) return size == 1 || size == 2;
  if (type == kWhile) return size == 1;
  return type == kSwitch && size != 0 && size <= kMostBodies;
}

}  // namespace

CUresult ConditionalWorkOf(Call& call, const Graph* graph, CUDA_CONDITIONAL_NODE_PARAMS* parameters, Work* work) noexcept {
  World& world = call.world;
  if (call.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Conditional* const handle = world.Find<Conditional>(parameters->handle);
  if (handle == nullptr || handle->node != nullptr || !IsInside(graph, handle->graph)) return CUDA_ERROR_INVALID_VALUE;
  if (!GoodSize(static_cast<int>(parameters->type), parameters->size)) return CUDA_ERROR_INVALID_VALUE;
  if (parameters->ctx == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (world.Find<Context>(parameters->ctx) != handle->context) return CUDA_ERROR_INVALID_VALUE;
  CUgraph* const shown = static_cast<CUgraph*>(world.arena.Allocate(parameters->size * sizeof(CUgraph)));
  if (shown == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  work->type = WorkType::Conditional;
  work->conditional = *parameters;
  work->conditional.phGraph_out = shown;
  for (unsigned i = 0; i < parameters->size; ++i) {
    const Graph* const body = MakeGraph(world, false);
    if (body == nullptr) {
      FreeBodies(world, work->conditional);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    shown[i] = ToHandle<CUgraph>(body);
  }
  parameters->phGraph_out = shown;
  return CUDA_SUCCESS;
}

bool IsBody(const Graph* graph) noexcept {
  for (; graph->parent != nullptr; graph = graph->parent->graph) {
    if (graph->parent->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return true;
  }
  return false;
}

const Node* NodeNoBodyHolds(const World& world, const Graph* graph) noexcept {
  const bool body = IsBody(graph);
  for (const Node* const node : graph->nodes) {
    switch (node->type) {
      case CU_GRAPH_NODE_TYPE_GRAPH:
        if (const Node* const inner = NodeNoBodyHolds(world, node->work.child); inner != nullptr) return inner;
        break;
      case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        for (unsigned i = 0; i < node->work.conditional.size; ++i) {
          const Graph* const inside = world.Find<Graph>(node->work.conditional.phGraph_out[i]);
          const Node* const inner = inside == nullptr ? nullptr : NodeNoBodyHolds(world, inside);
          if (inner != nullptr) return inner;
        }
        break;
      case CU_GRAPH_NODE_TYPE_KERNEL:
      case CU_GRAPH_NODE_TYPE_MEMCPY:
      case CU_GRAPH_NODE_TYPE_MEMSET:
      case CU_GRAPH_NODE_TYPE_EMPTY:
        break;
      default:
        if (body) return node;
    }
  }
  return nullptr;
}

bool SetConditionalValue(Plan* plan, std::uint64_t handle, unsigned value) noexcept {
  for (Slot& slot : plan->slots) {
    if (slot.handle != handle) continue;
    slot.value = value;
    return true;
  }
  return false;
}

}  // namespace cuaudit::sim
