// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/graph.h"

#include "faults/sim/module.h"

namespace cuaudit::sim {
namespace {

void FreeArguments(World& world, Node* node) {
  if (node->arguments != nullptr) world.arena.Free(node->arguments, node->arguments_bytes);
  node->arguments = nullptr;
  node->arguments_bytes = 0;
}

const Symbol* KernelSymbol(const World& world, const CUDA_KERNEL_NODE_PARAMS& kernel) {
  if (const Function* const function = world.Find<Function>(kernel.func); function != nullptr) return function->symbol;
  if (const Kernel* const named = world.Find<Kernel>(kernel.func); named != nullptr) return named->symbol;
  const Kernel* const given = world.Find<Kernel>(kernel.kern);
  return given == nullptr ? nullptr : given->symbol;
}

CUresult AppendSteps(World& world, Graph* graph, Executable* executable, bool top) {
  Vector<Node*> sorted;
  CUresult result = SortNodes(world, graph, &sorted);
  bool good = result == CUDA_SUCCESS;
  for (std::size_t i = 0; good && i < sorted.size(); ++i) {
    const Node* const node = sorted[i];
    good = executable->steps.Push(world.arena, Step{node->handle, node->type, true, node->work});
    if (good && node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
      result = AppendSteps(world, node->work.child, executable, false);
      good = result == CUDA_SUCCESS;
    }
  }
  if (good && top) executable->top_steps = static_cast<std::uint32_t>(sorted.size());
  sorted.Clear(world.arena);
  for (std::size_t i = 0; good && i < graph->holdings.size(); ++i) {
    good = Hold(world, &executable->holdings, graph->holdings[i].object, graph->holdings[i].count);
  }
  if (good) return CUDA_SUCCESS;
  return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

}  // namespace

Graph* MakeGraph(World& world, bool counted) noexcept { return world.Make<Graph>(nullptr, counted); }

void DestroyNode(World& world, Node* node) noexcept {
  for (Node* const other : node->dependencies) other->dependents.EraseValue(node);
  for (Node* const other : node->dependents) other->dependencies.EraseValue(node);
  node->dependencies.Clear(world.arena);
  node->dependents.Clear(world.arena);
  FreeArguments(world, node);
  node->graph->nodes.EraseValue(node);
  if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) DestroyGraph(world, node->work.child);
  world.Destroy(node);
}

void DestroyGraph(World& world, Graph* graph) noexcept {
  while (!graph->nodes.empty()) DestroyNode(world, graph->nodes[graph->nodes.size() - 1]);
  graph->nodes.Clear(world.arena);
  LetGo(world, &graph->holdings);
  world.Destroy(graph);
}

bool Link(World& world, Node* from, Node* to) noexcept {
  if (!to->dependencies.Push(world.arena, from)) return false;
  if (from->dependents.Push(world.arena, to)) return true;
  to->dependencies.EraseValue(from);
  return false;
}

bool KeepArguments(World& world, Node* node) noexcept {
  CUDA_KERNEL_NODE_PARAMS& kernel = node->work.kernel;
  const Symbol* const symbol = KernelSymbol(world, kernel);
  void** const given = kernel.kernelParams;
  void** const old = node->arguments;
  const std::size_t old_bytes = node->arguments_bytes;
  node->arguments = nullptr;
  node->arguments_bytes = 0;
  kernel.kernelParams = nullptr;
  bool good = true;
  if (given != nullptr && symbol != nullptr && symbol->parameters_known && !symbol->parameters.empty()) {
    std::size_t bytes = symbol->parameters.size() * sizeof(void*);
    for (const Parameter& parameter : symbol->parameters) bytes += (parameter.size + 15U) / 16U * 16U;
    void** const kept = static_cast<void**>(world.arena.Allocate(bytes));
    good = kept != nullptr;
    char* value = reinterpret_cast<char*>(kept + symbol->parameters.size());
    for (std::size_t i = 0; good && i < symbol->parameters.size(); ++i) {
      if (given[i] == nullptr) continue;
      kept[i] = value;
      std::memcpy(value, given[i], symbol->parameters[i].size);
      value += (symbol->parameters[i].size + 15U) / 16U * 16U;
    }
    node->arguments = kept;
    node->arguments_bytes = good ? bytes : 0;
    kernel.kernelParams = kept;
  }
  if (old != nullptr) world.arena.Free(old, old_bytes);
  return good;
}

Node* AddNode(World& world, Graph* graph, Node* const* dependencies, std::size_t count, CUgraphNodeType type, const Work& work) noexcept {
  Node* const node = world.Make<Node>(nullptr);
  if (node == nullptr) return nullptr;
  node->graph = graph;
  node->type = type;
  node->work = work;
  bool good = graph->nodes.Push(world.arena, node);
  for (std::size_t i = 0; good && i < count; ++i) good = Link(world, dependencies[i], node);
  if (good && type == CU_GRAPH_NODE_TYPE_KERNEL) good = KeepArguments(world, node);
  if (good && type == CU_GRAPH_NODE_TYPE_GRAPH) {
    node->work.child = CloneGraph(world, work.child, false);
    good = node->work.child != nullptr;
    if (good) node->work.child->parent = node;
  }
  if (good) return node;
  node->type = CU_GRAPH_NODE_TYPE_EMPTY;
  DestroyNode(world, node);
  return nullptr;
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
    if (good) copy->origin_handle = node->handle;
  }
  for (std::size_t i = 0; good && i < graph->nodes.size(); ++i) {
    for (std::size_t k = 0; good && k < graph->nodes[i]->dependencies.size(); ++k) {
      for (Node* const earlier : clone->nodes) {
        if (earlier->origin_handle == graph->nodes[i]->dependencies[k]->handle) good = Link(world, earlier, clone->nodes[i]);
      }
    }
  }
  for (std::size_t i = 0; good && i < graph->holdings.size(); ++i) {
    good = Hold(world, &clone->holdings, graph->holdings[i].object, graph->holdings[i].count);
  }
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

CUresult FillSteps(World& world, Graph* graph, Executable* executable) noexcept { return AppendSteps(world, graph, executable, true); }

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
    if (holding.object != object) continue;
    holding.count += count;
    object->references += count;
    return true;
  }
  if (!holdings->Push(world.arena, Holding{object, count})) return false;
  object->references += count;
  return true;
}

void ReleaseReferences(World& world, UserObject* object, std::uint64_t count) noexcept {
  object->references -= count;
  if (object->references != 0) return;
  (void)world.farewells.Push(world.arena, Farewell{object->destroy, object->argument});
  world.Destroy(object);
}

void LetGo(World& world, Vector<Holding>* holdings) noexcept {
  for (const Holding& holding : *holdings) ReleaseReferences(world, holding.object, holding.count);
  holdings->Clear(world.arena);
}

void FreeExecutable(World& world, Executable* executable) noexcept {
  LetGo(world, &executable->holdings);
  executable->steps.Clear(world.arena);
  if (!executable->destroyed) world.Retire(executable);
  world.arena.Delete(executable);
}

}  // namespace cuaudit::sim
