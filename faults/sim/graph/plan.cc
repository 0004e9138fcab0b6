// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/graph/plan.h"

#include "faults/sim/kernel/arguments.h"
#include "faults/sim/operation/access.h"
#include "faults/sim/order/marker.h"

namespace cuaudit::sim {
namespace {

CUresult AppendGraph(World& world, Graph* graph, Plan* plan) noexcept;

// `place` of a node: the index of its step.
bool AppendEdges(World& world, const Node* node, Plan* plan, Step* step) {
  step->first_edge = static_cast<std::uint32_t>(plan->edges.size());
  step->edges = static_cast<std::uint32_t>(node->dependencies.size());
  for (const Node* const earlier : node->dependencies) {
    if (!plan->edges.Push(world.arena, earlier->place)) return false;
  }
  return true;
}

CUresult AppendBodies(World& world, const Node* node, Plan* plan) {
  for (unsigned i = 0; i < node->work.conditional.size; ++i) {
    const std::size_t head = plan->steps.size();
    Graph* const body = world.Find<Graph>(node->work.conditional.phGraph_out[i]);
    if (body == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!plan->steps.Push(world.arena, Step())) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = AppendGraph(world, body, plan);
    if (result != CUDA_SUCCESS) return result;
    plan->steps[head].inner = static_cast<std::uint32_t>(plan->steps.size() - head - 1);
  }
  return CUDA_SUCCESS;
}

CUresult AppendNode(World& world, Node* node, Plan* plan) {
  const std::size_t place = plan->steps.size();
  Step step;
  step.node = node->handle;
  step.type = node->type;
  step.exit = node->dependents.empty();
  step.work = node->work;
  step.origin = node->added;
  for (std::size_t i = 0; i < node->graph->nodes.size(); ++i) {
    if (node->graph->nodes[i] == node) step.order = static_cast<std::uint32_t>(i);
  }
  if (!AppendEdges(world, node, plan, &step) || !plan->steps.Push(world.arena, step)) return CUDA_ERROR_OUT_OF_MEMORY;
  ShareArguments(step.work);
  node->place = static_cast<std::uint32_t>(place);
  if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    const CUresult result = AppendGraph(world, node->work.child, plan);
    if (result != CUDA_SUCCESS) return result;
  }
  if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    const CUresult result = AppendBodies(world, node, plan);
    if (result != CUDA_SUCCESS) return result;
  }
  plan->steps[place].inner = static_cast<std::uint32_t>(plan->steps.size() - place - 1);
  return CUDA_SUCCESS;
}

CUresult AppendGraph(World& world, Graph* graph, Plan* plan) noexcept {
  for (const Conditional* const conditional : graph->conditionals) {
    const Slot slot{conditional->handle, conditional->value, conditional->flags, 0};
    if (!plan->slots.Push(world.arena, slot)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Vector<Node*> sorted;
  CUresult result = SortNodes(world, graph, &sorted);
  for (std::size_t i = 0; result == CUDA_SUCCESS && i < sorted.size(); ++i) result = AppendNode(world, sorted[i], plan);
  sorted.Clear(world.arena);
  return result;
}

Plan* CopyPlan(World& world, const Plan& plan) {
  Plan* const copy = world.arena.New<Plan>();
  if (copy == nullptr) return nullptr;
  if (!copy->steps.Assign(world.arena, plan.steps.begin(), plan.steps.size()) ||
      !copy->slots.Assign(world.arena, plan.slots.begin(), plan.slots.size()) ||
      !copy->edges.Assign(world.arena, plan.edges.begin(), plan.edges.size()) ||
      !copy->pointees.Assign(world.arena, plan.pointees.begin(), plan.pointees.size())) {
    copy->slots.Clear(world.arena);
    copy->steps.Clear(world.arena);
    copy->edges.Clear(world.arena);
    copy->pointees.Clear(world.arena);
    world.arena.Delete(copy);
    return nullptr;
  }
  for (const Step& step : copy->steps) ShareArguments(step.work);
  return copy;
}

}  // namespace

CUresult MakePlan(World& world, Graph* graph, Plan** out) noexcept {
  Plan* const plan = world.arena.New<Plan>();
  if (plan == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = AppendGraph(world, graph, plan);
  if (result == CUDA_SUCCESS) {
    RememberPointees(world, plan, 0, plan->steps.size());
    *out = plan;
  } else {
    DropPlan(world, plan);
  }
  return result;
}

void DropPlan(World& world, Plan* plan) noexcept {
  if (plan == nullptr || --plan->references != 0) return;
  for (const Step& step : plan->steps) DropArguments(world, step.work);
  plan->steps.Clear(world.arena);
  plan->edges.Clear(world.arena);
  plan->slots.Clear(world.arena);
  plan->pointees.Clear(world.arena);
  world.arena.Delete(plan);
}

Plan* OwnPlan(World& world, Executable* executable) noexcept {
  if (executable->plan->references == 1) return executable->plan;
  Plan* const copy = CopyPlan(world, *executable->plan);
  if (copy == nullptr) return nullptr;
  DropPlan(world, executable->plan);
  executable->plan = copy;
  return copy;
}

bool SetStepWork(World& world, Step* step, const Work& work) noexcept {
  Work copy = work;
  if (work.type == WorkType::Kernel && !CopyArguments(world, KernelSymbol(world, work.kernel), &copy)) return false;
  DropArguments(world, step->work);
  step->work = copy;
  return true;
}

void FreeExecutable(World& world, Executable* executable) noexcept {
  LetGo(world, &executable->holdings);
  LetGo(world, &executable->former);
  DropPlan(world, executable->plan);
  DropMarker(world, executable->last);
  if (!executable->destroyed) world.Retire(executable);
  world.arena.Delete(executable);
}

void RememberPointees(World& world, Plan* plan, std::size_t first, std::size_t count) noexcept {
  plan->compared = false;
  if (world.on_misuse == nullptr) return;
  std::size_t kept = 0;
  for (const Pointee& pointee : plan->pointees) {
    if (pointee.step < first || pointee.step >= first + count) plan->pointees[kept++] = pointee;
  }
  plan->pointees.Truncate(kept);
  AccessList list;
  for (std::size_t i = 0; i < first + count; ++i) {
    const std::size_t step = i;
    if (plan->steps[i].type == CU_GRAPH_NODE_TYPE_CONDITIONAL) i += plan->steps[i].inner;  // unknown which bodies will run
    if (step < first) continue;
    list.Truncate(0);
    (void)ListAccesses(world, plan->steps[step].work, &list);
    for (const Access& access : list) {
      const Range* const range = world.ranges.Find(access.box.address);
      if (range == nullptr || range->kind == Kind::HostRegistration) continue;
      if (range->graph != nullptr) continue;  // it comes back with the next launch
      (void)plan->pointees.Push(world.arena, Pointee{static_cast<std::uint32_t>(step), range->kind, range->base, range->asked, range->id});
    }
  }
  list.Clear(world.arena);
}

}  // namespace cuaudit::sim
