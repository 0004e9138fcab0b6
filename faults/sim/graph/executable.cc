// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/graph/executable.h"

#include "faults/sim/kernel/launch.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/operation/access.h"
#include "faults/sim/order/clock.h"

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

namespace {

// The owning context: null for a kernel of a library, which has a function in each context.
const Context* OwnerOf(const World& world, const CUDA_KERNEL_NODE_PARAMS& kernel) {
  const Function* const function = world.Find<Function>(kernel.func);
  return function == nullptr || function->module->library != nullptr ? world.Find<Context>(kernel.ctx) : function->module->owner;
}

const Context* OwnerAt(const World& world, CUdeviceptr address) {
  const Range* const range = world.ranges.Find(address);
  return range == nullptr ? nullptr : range->owner;
}

bool IsFlat(const CUDA_MEMCPY3D& copy) { return copy.Height == 1 && copy.Depth == 1; }

bool SameEnd(const World& world, CUmemorytype before, CUdeviceptr from, CUmemorytype after, CUdeviceptr to) {
  if (before != after) return false;
  const Context* const one = OwnerAt(world, from);
  const Context* const other = OwnerAt(world, to);
  return before != CU_MEMORYTYPE_DEVICE || one == other || one == nullptr || other == nullptr;  // a pool's memory belongs to no context
}

CUgraphExecUpdateResult CompareKernels(const World& world, const CUDA_KERNEL_NODE_PARAMS& before, const CUDA_KERNEL_NODE_PARAMS& after) {
  return OwnerOf(world, before) == OwnerOf(world, after) ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                         : CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
}

class Pairing {
 public:
  Pairing(World& world, const Plan& before, const Plan& after, Vector<std::uint32_t>* pairs, CUgraphExecUpdateResultInfo* info)
      : world_(world), before_(before), after_(after), pairs_(*pairs), info_(*info) {}

  // The steps [first, last) of both plans that stand for the nodes of one graph, those of inner graphs skipped.
  bool PairGraph(std::uint32_t first, std::uint32_t last, std::uint32_t other_first, std::uint32_t other_last) {
    Vector<std::uint32_t> own;
    Vector<std::uint32_t> others;
    bool good = List(before_, first, last, &own) && List(after_, other_first, other_last, &others);
    if (good && own.size() != others.size()) good = Fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, kUnpaired);
    for (std::uint32_t number = 0, other = 0; good && number < own.size(); ++number) {
      const std::uint32_t exit = own[number];
      if (!before_.steps[exit].exit) continue;
      while (other < others.size() && !after_.steps[others[other]].exit) ++other;
      good = other < others.size() ? Pair(exit, others[other]) : Fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, kUnpaired);
      ++other;
    }
    for (std::uint32_t i = 0; good && i < others.size(); ++i) {
      if (!Paired(others[i])) good = Fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, others[i]);
    }
    own.Clear(world_.arena);
    others.Clear(world_.arena);
    return good;
  }

 private:
  // Pairs nodes in the order in which they were added to their graph.
  bool List(const Plan& plan, std::uint32_t first, std::uint32_t last, Vector<std::uint32_t>* steps) {
    for (std::uint32_t i = first; i < last; i += plan.steps[i].inner + 1) {
      if (!steps->Push(world_.arena, i)) return Fail(CU_GRAPH_EXEC_UPDATE_ERROR, kUnpaired);
      for (std::size_t k = steps->size() - 1; k > 0 && plan.steps[(*steps)[k - 1]].order > plan.steps[i].order; --k) {
        (*steps)[k] = (*steps)[k - 1];
        (*steps)[k - 1] = i;
      }
    }
    return true;
  }

  // Pairs nodes depth first from the exits, dependency by dependency in the order of the edges.
  bool Pair(std::uint32_t own, std::uint32_t other) {
    Vector<std::uint32_t> open;
    bool good = Join(own, other) && open.Push(world_.arena, own);
    while (good && !open.empty()) {
      const std::uint32_t at = open[open.size() - 1];
      open.Truncate(open.size() - 1);
      const Step& step = before_.steps[at];
      const Step& twin = after_.steps[pairs_[at]];
      if (step.edges != twin.edges) good = Fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, pairs_[at]);
      for (std::uint32_t k = 0; good && k < step.edges; ++k) {
        const std::uint32_t earlier = before_.edges[step.first_edge + k];
        const std::uint32_t earlier_twin = after_.edges[twin.first_edge + k];
        if (pairs_[earlier] == earlier_twin) continue;
        if (pairs_[earlier] != kUnpaired || Paired(earlier_twin)) {
          info_.errorFromNode = reinterpret_cast<CUgraphNode>(static_cast<std::uintptr_t>(after_.steps[earlier_twin].node));
          good = Fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, pairs_[at]);
        } else {
          good = Join(earlier, earlier_twin) && open.Push(world_.arena, earlier);
        }
      }
    }
    open.Clear(world_.arena);
    return good;
  }

  bool Join(std::uint32_t own, std::uint32_t other) {
    pairs_[own] = other;
    const Step& step = before_.steps[own];
    const Step& twin = after_.steps[other];
    if (step.type != twin.type) return Fail(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, other);
    const CUgraphExecUpdateResult result = CompareWork(world_, step.work, twin.work);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return Fail(result, other);
    if (step.type == CU_GRAPH_NODE_TYPE_GRAPH) return PairGraph(own + 1, own + 1 + step.inner, other + 1, other + 1 + twin.inner);
    return step.type != CU_GRAPH_NODE_TYPE_CONDITIONAL || PairBodies(own, other);
  }

  bool PairBodies(std::uint32_t own, std::uint32_t other) {
    const std::uint32_t last = own + before_.steps[own].inner;
    for (++own, ++other; own <= last;) {
      const std::uint32_t end = own + 1 + before_.steps[own].inner;
      const std::uint32_t other_end = other + 1 + after_.steps[other].inner;
      pairs_[own] = other;
      if (!PairGraph(own + 1, end, other + 1, other_end)) return false;
      own = end;
      other = other_end;
    }
    return true;
  }

  bool Paired(std::uint32_t other) const { return pairs_.Contains(other); }

  bool Fail(CUgraphExecUpdateResult result, std::uint32_t other) {
    if (info_.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return false;
    info_.result = result;
    if (other != kUnpaired) info_.errorNode = reinterpret_cast<CUgraphNode>(static_cast<std::uintptr_t>(after_.steps[other].node));
    return false;
  }

  World& world_;
  const Plan& before_;
  const Plan& after_;
  Vector<std::uint32_t>& pairs_;
  CUgraphExecUpdateResultInfo& info_;
};

}  // namespace

CUgraphExecUpdateResult CompareWork(const World& world, const Work& before, const Work& after) noexcept {
  if (before.cooperative != after.cooperative) return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  if (before.type == WorkType::Kernel) return CompareKernels(world, before.kernel, after.kernel);
  if (before.type == WorkType::Batch) {
    return before.batch.count == after.batch.count ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (before.type == WorkType::Write || before.type == WorkType::Await) {  // of semaphores
    return before.value.count == after.value.count ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (before.memory != after.memory) return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  if (before.type == WorkType::Copy) {
    const CUDA_MEMCPY3D& own = before.copy;
    const CUDA_MEMCPY3D& other = after.copy;
    const bool ends = SameEnd(world, own.srcMemoryType, own.srcDevice, other.srcMemoryType, other.srcDevice) &&
                      SameEnd(world, own.dstMemoryType, own.dstDevice, other.dstMemoryType, other.dstDevice);
    const bool shape = (IsFlat(own) && IsFlat(other)) ||
                       (own.WidthInBytes == other.WidthInBytes && own.Height == other.Height && own.Depth == other.Depth);
    return ends && shape ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (before.type == WorkType::Fill) {
    const CUDA_MEMSET_NODE_PARAMS& own = before.fill;
    const CUDA_MEMSET_NODE_PARAMS& other = after.fill;
    const bool flat = own.height == 1 && other.height == 1;
    const bool shape = own.width == other.width && own.height == other.height && own.elementSize == other.elementSize;
    const bool place = OwnerAt(world, own.dst) == OwnerAt(world, other.dst);
    return place && (flat || shape) ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (before.type == WorkType::Conditional) {
    const bool same = before.conditional.type == after.conditional.type && before.conditional.size == after.conditional.size;
    return same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUgraphExecUpdateResult ComparePart(World& world, const Plan& before, std::uint32_t child, const Plan& after, Vector<std::uint32_t>* pairs,
                                    CUgraphExecUpdateResultInfo* info) noexcept {
  const bool whole = child == kUnpaired;
  info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  for (std::size_t i = 0; i < before.steps.size(); ++i) {
    if (!pairs->Push(world.arena, kUnpaired)) return info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  }
  const std::uint32_t first = whole ? 0 : child + 1;
  const std::uint32_t last = whole ? static_cast<std::uint32_t>(before.steps.size()) : first + before.steps[child].inner;
  Pairing pairing(world, before, after, pairs, info);
  (void)pairing.PairGraph(first, last, 0, static_cast<std::uint32_t>(after.steps.size()));
  return info->result;
}

CUgraphExecUpdateResult ComparePlans(World& world, const Plan& before, const Plan& after, Vector<std::uint32_t>* pairs,
                                     CUgraphExecUpdateResultInfo* info) noexcept {
  return ComparePart(world, before, kUnpaired, after, pairs, info);
}

}  // namespace cuaudit::sim
