// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/graph/node.h"

#include "faults/sim/kernel/launch.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/operation/value_work.h"

namespace cuaudit::sim {

CUresult Dependencies::Resolve(CUgraph handle, const CUgraphNode* handles, std::size_t count) noexcept {
  graph_ = world_.Find<Graph>(handle);
  if (graph_ == nullptr || (count != 0 && handles == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    Node* const node = world_.Find<Node>(handles[i]);
    if (node == nullptr || node->graph != graph_ || nodes_.Contains(node)) return CUDA_ERROR_INVALID_VALUE;
    if (!nodes_.Push(world_.arena, node)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS Widen(const CUDA_KERNEL_NODE_PARAMS_v1& from) noexcept {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = from.func;
  kernel.gridDimX = from.gridDimX;
  kernel.gridDimY = from.gridDimY;
  kernel.gridDimZ = from.gridDimZ;
  kernel.blockDimX = from.blockDimX;
  kernel.blockDimY = from.blockDimY;
  kernel.blockDimZ = from.blockDimZ;
  kernel.sharedMemBytes = from.sharedMemBytes;
  kernel.kernelParams = from.kernelParams;
  kernel.extra = from.extra;
  return kernel;
}

CUresult KernelWork(Call& call, const CUDA_KERNEL_NODE_PARAMS& parameters, Work* work) noexcept {
  CUresult result = CUDA_SUCCESS;
  if (parameters.func != nullptr && FindFunction(call, parameters.func, &result) == nullptr) return result;  // no kernel stands for it here
  result = CheckKernel(call, parameters, nullptr);
  // A node without a function is no stale handle but a missing argument.
  if (result != CUDA_SUCCESS) return parameters.func == nullptr && parameters.kern == nullptr ? CUDA_ERROR_INVALID_VALUE : result;
  work->type = WorkType::Kernel;
  work->kernel = parameters;
  return CUDA_SUCCESS;
}

CUresult CopyWork(Call& call, const CUDA_MEMCPY3D* parameters, Work* work) noexcept {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (parameters->WidthInBytes == 0 || parameters->Height == 0 || parameters->Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckCopy(call.world, *parameters, true);
  work->type = WorkType::Copy;
  work->copy = *parameters;
  return result;
}

CUresult FillWork(Call& call, const CUDA_MEMSET_NODE_PARAMS* parameters, Work* work) noexcept {
  if (parameters == nullptr || parameters->width == 0 || parameters->height == 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckFill(call.world, *parameters, true);
  work->type = WorkType::Fill;
  work->fill = *parameters;
  return result;
}

CUresult HostWork(const CUDA_HOST_NODE_PARAMS* parameters, Work* work) noexcept {
  if (parameters == nullptr || parameters->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  work->type = WorkType::HostFunction;
  work->host = *parameters;
  return CUDA_SUCCESS;
}

CUresult EventWork(Call& call, CUevent event, WorkType type, Work* work) noexcept {
  if (call.Follow<Event>(event) == nullptr) return event == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  work->type = type;
  work->event = event;
  return CUDA_SUCCESS;
}

static bool IsReservedClear(const CUgraphNodeParams& parameters) {
  return parameters.reserved0[0] == 0 && parameters.reserved0[1] == 0 && parameters.reserved0[2] == 0 && parameters.reserved2 == 0;
}

// Without a current context. A device crashes on a kernel node, and no device was asked about semaphores. Other nodes need none.
static CUresult RefuseType(Call& call, CUgraphNodeType type) {
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) return call.Undefined(CUDA_ERROR_INVALID_CONTEXT);
  const bool semaphores = type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL || type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
  return semaphores ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult WorkOf(Call& call, const CUgraphNodeParams* parameters, CUgraphNodeType* type, Work* work) noexcept {
  if (parameters == nullptr || !IsReservedClear(*parameters)) return CUDA_ERROR_INVALID_VALUE;
  if (call.context == nullptr) {
    const CUresult refusal = RefuseType(call, parameters->type);
    if (refusal != CUDA_SUCCESS) return refusal;
  }
  *type = parameters->type;
  switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel{};
      static_assert(sizeof(kernel) == sizeof(parameters->kernel));
      std::memcpy(&kernel, &parameters->kernel, sizeof(kernel));
      return KernelWork(call, kernel, work);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return CopyWork(call, &parameters->memcpy.copyParams, work);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS fill{parameters->memset.dst,         parameters->memset.pitch, parameters->memset.value,
                                         parameters->memset.elementSize, parameters->memset.width, parameters->memset.height};
      return FillWork(call, &fill, work);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host{parameters->host.fn, parameters->host.userData};
      return HostWork(&host, work);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      work->type = WorkType::Child;
      work->child = call.world.Find<Graph>(parameters->graph.graph);
      return work->child == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return EventWork(call, parameters->eventRecord.event, WorkType::Record, work);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return EventWork(call, parameters->eventWait.event, WorkType::Wait, work);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: {
      const auto& signal = parameters->extSemSignal;
      return SignalWork(call, signal.extSemArray, signal.paramsArray, signal.numExtSems, work);
    }
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: {
      const auto& wait = parameters->extSemWait;
      return AwaitWork(call, wait.extSemArray, wait.paramsArray, wait.numExtSems, work);
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return CUDA_ERROR_NOT_SUPPORTED;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      CUDA_BATCH_MEM_OP_NODE_PARAMS batch{parameters->memOp.ctx, parameters->memOp.count, parameters->memOp.paramArray,
                                          parameters->memOp.flags};
      return BatchWork(call, &batch, work);
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

Node* FindNode(Call& call, CUgraphNode handle, CUgraphNodeType type) noexcept {
  Node* const node = call.world.Find<Node>(handle);
  return node != nullptr && node->type == type ? node : nullptr;
}

const Step* FindStep(const World& world, const Executable* executable, CUgraphNode node) noexcept {
  if (world.Find<Node>(node) == nullptr) return nullptr;  // it must still stand in its graph
  const std::uint64_t wanted = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(node));
  for (const Step& step : executable->plan->steps) {
    if (step.node == wanted) return &step;
  }
  return nullptr;
}

static CUresult Change(Call& call, CUgraphExec handle, CUgraphNode node, CUgraphNodeType type, CUresult made, const Work& work) {
  Executable* const executable = call.world.Find<Executable>(handle);
  const Step* const step = executable == nullptr ? nullptr : FindStep(call.world, executable, node);
  if (step == nullptr || step->type != type) return CUDA_ERROR_INVALID_VALUE;
  if (made != CUDA_SUCCESS) return made;
  // Attributes stay the node's own.
  Work kept = work;
  kept.cooperative = step->work.cooperative;
  if (CompareWork(call.world, step->work, kept) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t place = static_cast<std::size_t>(step - executable->plan->steps.begin());
  Plan* const plan = OwnPlan(call.world, executable);
  if (plan == nullptr || !SetStepWork(call.world, &plan->steps[place], kept)) return CUDA_ERROR_OUT_OF_MEMORY;
  RememberPointees(call.world, plan, place, 1);
  return CUDA_SUCCESS;
}

CUresult SetStep(Call& call, CUgraphExec handle, CUgraphNode node, CUgraphNodeType type, CUresult result, const Work& work) noexcept {
  const CUresult answer = Change(call, handle, node, type, result, work);
  if (result == CUDA_SUCCESS && answer != CUDA_SUCCESS) DropArguments(call.world, work);
  return answer;
}

bool MayAnnotate(CUgraphNodeType from, CUgraphNodeType to, const CUgraphEdgeData& edge) noexcept {
  for (const unsigned char byte : edge.reserved) {
    if (byte != 0) return false;
  }
  if (edge.to_port != 0) return false;
  if (edge.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT) return edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_DEFAULT;
  const bool port = edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC || edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
  return edge.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && port && from == CU_GRAPH_NODE_TYPE_KERNEL && to == CU_GRAPH_NODE_TYPE_KERNEL;
}

// The value also brings back the handle for device code, which nothing here can use.
CUresult SetUpdatable(Node* node, CUlaunchAttributeValue* value) noexcept {
  const int wanted = value->deviceUpdatableKernelNode.deviceUpdatable;
  if ((wanted != 0 && wanted != 1) || (wanted == 0 && node->updatable)) return CUDA_ERROR_INVALID_VALUE;  // there is no way back
  if (wanted == 0) return CUDA_SUCCESS;
  node->updatable = true;
  value->deviceUpdatableKernelNode.devNode = ToHandle<CUgraphDeviceNode>(node);
  return CUDA_SUCCESS;
}

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
