// SPDX-License-Identifier: MIT
// Executable graphs: instantiated, launched, updated.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/graph/memory_node.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/kernel/launch.h"
#include "faults/sim/operation/value_work.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

constexpr unsigned long long kInstantiateFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                                 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

bool CanDisable(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_MEMCPY;
}

constexpr auto kHandleUnused = static_cast<CUgraphInstantiateResult>(5);  // older toolkits have no name for it

struct Refusal {
  CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  const Node* node = nullptr;
};

CUresult Refuse(Refusal* refusal, CUgraphInstantiateResult result, const Node* node = nullptr, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  *refusal = {result, node};
  return code;
}

// A graph launched from the device has nothing but kernels, copies, fills and graphs of them.
const Node* NodeNoDeviceLaunches(const Graph* graph) {
  for (const Node* const node : graph->nodes) {
    const bool plain = CanDisable(node->type) || node->type == CU_GRAPH_NODE_TYPE_EMPTY;
    if (!plain && node->work.type != WorkType::Child) return node;
    if (node->work.type == WorkType::Child && NodeNoDeviceLaunches(node->work.child) != nullptr) return node;
  }
  return nullptr;
}

// A node whose function, array or event is gone. A device crashes on it.
const Node* NodeOfNothing(const World& world, const Graph* graph) {
  const auto no_array = [&](CUmemorytype type, CUarray array) {
    return type == CU_MEMORYTYPE_ARRAY && world.Find<Array>(array) == nullptr;
  };
  for (const Node* const node : graph->nodes) {
    const Work& work = node->work;
    const CUDA_MEMCPY3D& copy = work.copy;
    bool nothing = false;
    if (work.type == WorkType::Kernel) {
      nothing = KernelSymbol(world, work.kernel) == nullptr;
    } else if (work.type == WorkType::Copy) {
      nothing = no_array(copy.srcMemoryType, copy.srcArray) || no_array(copy.dstMemoryType, copy.dstArray);
    } else if (work.type == WorkType::Record || work.type == WorkType::Wait) {
      nothing = world.Find<Event>(work.event) == nullptr;
    } else if (work.type == WorkType::Child) {
      nothing = NodeOfNothing(world, work.child) != nullptr;
    }
    if (nothing) return node;
  }
  return nullptr;
}

CUresult Instantiate(Call& call, CUgraphExec* out, CUgraph handle, unsigned long long flags, Refusal* refusal) {
  World& world = call.world;
  Graph* const graph = world.Find<Graph>(handle);
  if (out == nullptr || graph == nullptr || graph->capturing || (flags & ~kInstantiateFlags) != 0) {
    return Refuse(refusal, CUDA_GRAPH_INSTANTIATE_ERROR);
  }
  if (IsBody(graph) || graph->IsChild()) return Refuse(refusal, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr, CUDA_ERROR_NOT_SUPPORTED);
  for (const Conditional* const conditional : graph->conditionals) {
    if (conditional->node == nullptr) return Refuse(refusal, kHandleUnused);
  }
  if (const Node* const node = NodeNoBodyHolds(world, graph); node != nullptr) {
    return Refuse(refusal, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node);
  }
  if (const Node* const node = NodeOfNothing(world, graph); node != nullptr) {
    return Refuse(refusal, CUDA_GRAPH_INSTANTIATE_ERROR, node, call.Undefined(CUDA_ERROR_INVALID_HANDLE));
  }
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    const Node* node = nullptr;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0 || graph->nodes.empty()) {
      return Refuse(refusal, CUDA_GRAPH_INSTANTIATE_ERROR);
    }
    if ((node = NodeNoDeviceLaunches(graph)) != nullptr) return Refuse(refusal, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, node);
  }
  if (graph->executable != 0 && world.Find<Executable>(graph->executable) != nullptr) {
    return Refuse(refusal, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr, CUDA_ERROR_NOT_SUPPORTED);
  }
  Executable* const executable = world.Make<Executable>(nullptr);
  if (executable == nullptr) return Refuse(refusal, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  executable->flags = flags;
  CUresult result = MakePlan(world, graph, &executable->plan);
  if (result == CUDA_SUCCESS && !HoldAll(world, graph, &executable->holdings)) result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result != CUDA_SUCCESS) {
    FreeExecutable(world, executable);
    const bool cycle = result == CUDA_ERROR_INVALID_VALUE;
    return Refuse(refusal, cycle ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE : CUDA_GRAPH_INSTANTIATE_ERROR,
                  cycle ? NodeInCycle(world, graph) : nullptr, result);
  }
  executable->updatable = HasUpdatable(graph);
  if (OwnsMemory(graph) || HasConditional(graph) || executable->updatable) graph->executable = executable->handle;
  *out = ToHandle<CUgraphExec>(executable);
  return CUDA_SUCCESS;
}

// True when a kernel's context is gone. Here executables are of no context.
bool OutlivesItsContext(const World& world, const Executable* executable) {
  for (const Step& step : executable->plan->steps) {
    if (step.work.type == WorkType::Kernel && world.DiedWithContext(step.work.kernel.func)) return true;
  }
  return false;
}

// Takes the parameters of `fresh` into the steps that it pairs with. The nodes keep the names under which the executable was made.
CUresult Replace(World& world, Executable* executable, const Plan& fresh, const Vector<std::uint32_t>& pairs, std::size_t first,
                 std::size_t count) {
  Plan* const plan = OwnPlan(world, executable);
  if (plan == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i] == kUnpaired || plan->steps[i].type == CU_GRAPH_NODE_TYPE_CONDITIONAL) continue;
    Work& work = plan->steps[i].work;
    ShareArguments(fresh.steps[pairs[i]].work);
    DropArguments(world, work);
    work = fresh.steps[pairs[i]].work;
  }
  for (std::size_t i = 0; i < plan->slots.size() && i < fresh.slots.size(); ++i) {
    plan->slots[i].initial = fresh.slots[i].initial;
    plan->slots[i].flags = fresh.slots[i].flags;
  }
  RememberPointees(world, plan, first, count);
  return CUDA_SUCCESS;
}

CUresult SetChild(Call& call, CUgraphExec handle, CUgraphNode node, CUgraph child_handle) {
  World& world = call.world;
  Executable* const executable = world.Find<Executable>(handle);
  Graph* const child = world.Find<Graph>(child_handle);
  const Step* const step = executable == nullptr ? nullptr : FindStep(world, executable, node);
  if (child == nullptr || step == nullptr || step->type != CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
  const std::uint32_t place = static_cast<std::uint32_t>(step - executable->plan->steps.begin());
  Plan* fresh = nullptr;
  Vector<std::uint32_t> pairs;
  CUgraphExecUpdateResultInfo info{};
  CUresult result = MakePlan(world, child, &fresh);
  if (result == CUDA_SUCCESS && ComparePart(world, *executable->plan, place, *fresh, &pairs, &info) != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
    result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  if (result == CUDA_SUCCESS) result = Replace(world, executable, *fresh, pairs, place + 1, executable->plan->steps[place].inner);
  pairs.Clear(world.arena);
  DropPlan(world, fresh);
  return result;
}

}  // namespace

CUresult api::GraphInstantiateWithFlags(Call& call, CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;  // there is no stream to upload in
  Refusal refusal;
  return Instantiate(call, out, graph, flags, &refusal);
}

CUresult api::GraphInstantiate(Call& call, CUgraphExec* out, CUgraph graph, CUgraphNode* error, char* log, std::size_t log_bytes) {
  if (error != nullptr) *error = nullptr;
  if (log != nullptr && log_bytes != 0) log[0] = '\0';
  Refusal refusal;
  const CUresult result = Instantiate(call, out, graph, 0, &refusal);
  if (error != nullptr && refusal.node != nullptr) *error = ToHandle<CUgraphNode>(refusal.node);
  return result;
}

CUresult api::GraphInstantiateWithParams(Call& call, CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  if (call.context == nullptr) {  // only the stream of an upload can bring one
    if ((parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (FindStream(call, parameters->hUploadStream, &result) == nullptr) return result;
  }
  Refusal refusal;
  result = Instantiate(call, out, graph, parameters->flags, &refusal);
  parameters->hErrNode_out = refusal.node == nullptr ? nullptr : ToHandle<CUgraphNode>(refusal.node);
  parameters->result_out = refusal.result;
  return result;
}

CUresult api::GraphExecDestroy(Call& call, CUgraphExec handle) {
  Executable* const executable = call.world.Find<Executable>(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = OutlivesItsContext(call.world, executable) ? call.Undefined(CUDA_SUCCESS) : CUDA_SUCCESS;
  if (executable->in_flight == 0) {
    FreeExecutable(call.world, executable);
  } else {
    // The handle is gone; the last launch under way keeps what it needs, user objects included.
    call.world.Retire(executable);
    executable->destroyed = true;
  }
  return result;
}

CUresult api::GraphExecGetFlags(Call& call, CUgraphExec handle, cuuint64_t* flags) {
  const Executable* const executable = call.world.Find<Executable>(handle);
  if (executable == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = executable->flags & ~static_cast<cuuint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
  return CUDA_SUCCESS;
}

CUresult api::GraphLaunch(Call& call, CUgraphExec handle, CUstream stream_handle) {
  Executable* const executable = call.world.Find<Executable>(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, stream_handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture != nullptr) {
    Invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  Claim claim(call.world, stream);
  result = claim.Take(*executable->plan, (executable->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0);
  if (result != CUDA_SUCCESS) return result;
  Work work;
  work.type = WorkType::Launch;
  work.launch = {executable, executable->plan};
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_GRAPH, work);
  if (result != CUDA_SUCCESS) return result;
  claim.Keep();
  ++executable->in_flight;
  ++executable->plan->references;
  return result;
}

CUresult api::GraphUpload(Call& call, CUgraphExec handle, CUstream stream_handle) {
  const Executable* const executable = call.world.Find<Executable>(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, stream_handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture == nullptr) {
    result = WaitOn(call.world, stream, executable->last);
    return result == CUDA_SUCCESS ? Submit(call, stream, CU_GRAPH_NODE_TYPE_EMPTY, Work()) : result;
  }
  Invalidate(stream->capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult api::GraphExecUpdate_v2(Call& call, CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
  World& world = call.world;
  Executable* const executable = world.Find<Executable>(handle);
  Graph* const graph = world.Find<Graph>(graph_handle);
  CUgraphExecUpdateResultInfo unseen{};
  if (executable == nullptr || graph == nullptr || graph->IsChild()) return CUDA_ERROR_INVALID_VALUE;
  if (info == nullptr) info = &unseen;
  *info = {};
  Plan* fresh = nullptr;
  Vector<Holding> holdings;
  Vector<std::uint32_t> pairs;
  CUresult result = MakePlan(world, graph, &fresh);
  if (result == CUDA_SUCCESS && !HoldAll(world, graph, &holdings)) result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result != CUDA_SUCCESS) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  } else if (executable->updatable || HasUpdatable(graph)) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  } else if (ComparePlans(world, *executable->plan, *fresh, &pairs, info) != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
    result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  } else if ((result = Replace(world, executable, *fresh, pairs, 0, pairs.size())) == CUDA_SUCCESS) {
    const Vector<Holding> old = executable->holdings;
    executable->holdings = holdings;
    holdings = old;
    if (executable->in_flight != 0) {
      for (const Holding& holding : holdings) {
        // Held until the launches are done; without room for that it goes at once.
        UserObject* const object = world.Find<UserObject>(holding.object);
        if (object != nullptr) (void)Hold(world, &executable->former, object, holding.count);
      }
    }
  }
  LetGo(world, &holdings);
  pairs.Clear(world.arena);
  DropPlan(world, fresh);
  return result;
}

CUresult api::GraphExecUpdate(Call& call, CUgraphExec handle, CUgraph graph, CUgraphNode* error, CUgraphExecUpdateResult* outcome) {
  if (outcome == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = GraphExecUpdate_v2(call, handle, graph, &info);
  *outcome = info.result;
  if (error != nullptr) *error = info.errorNode;
  return result;
}

CUresult api::GraphExecKernelNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const CUresult result = KernelWork(call, *parameters, &work);
  return SetStep(call, handle, node, CU_GRAPH_NODE_TYPE_KERNEL, result, work);
}

CUresult api::GraphExecKernelNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widen(*parameters);
  return GraphExecKernelNodeSetParams(call, handle, node, &wide);
}

CUresult api::GraphExecMemcpyNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node, const CUDA_MEMCPY3D* parameters, CUcontext) {
  Work work;
  const CUresult result = CopyWork(call, parameters, &work);
  return SetStep(call, handle, node, CU_GRAPH_NODE_TYPE_MEMCPY, result, work);
}

CUresult api::GraphExecMemsetNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* parameters,
                                           CUcontext) {
  Work work;
  const CUresult result = FillWork(call, parameters, &work);
  return SetStep(call, handle, node, CU_GRAPH_NODE_TYPE_MEMSET, result, work);
}

CUresult api::GraphExecHostNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
  Work work;
  const CUresult result = HostWork(parameters, &work);
  return SetStep(call, handle, node, CU_GRAPH_NODE_TYPE_HOST, result, work);
}

CUresult api::GraphExecEventRecordNodeSetEvent(Call& call, CUgraphExec handle, CUgraphNode node, CUevent event) {
  Work work;
  const CUresult result = EventWork(call, event, WorkType::Record, &work);
  return SetStep(call, handle, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, result, work);
}

CUresult api::GraphExecEventWaitNodeSetEvent(Call& call, CUgraphExec handle, CUgraphNode node, CUevent event) {
  Work work;
  const CUresult result = EventWork(call, event, WorkType::Wait, &work);
  return SetStep(call, handle, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, result, work);
}

CUresult api::GraphExecChildGraphNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node, CUgraph child) {
  return SetChild(call, handle, node, child);
}

CUresult api::GraphExecBatchMemOpNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node,
                                               const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  Work work;
  const CUresult result = BatchWork(call, parameters, &work);
  return SetStep(call, handle, node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, result, work);
}

CUresult api::GraphExecNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node, CUgraphNodeParams* parameters) {
  Work work;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  const CUresult result = WorkOf(call, parameters, &type, &work);
  if (type == CU_GRAPH_NODE_TYPE_GRAPH) return SetChild(call, handle, node, parameters->graph.graph);
  return SetStep(call, handle, node, type, result, work);
}

CUresult api::GraphNodeSetEnabled(Call& call, CUgraphExec handle, CUgraphNode node, unsigned int enabled) {
  Executable* const executable = call.world.Find<Executable>(handle);
  const Step* const step = executable == nullptr ? nullptr : FindStep(call.world, executable, node);
  if (step == nullptr || !CanDisable(step->type)) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t place = static_cast<std::size_t>(step - executable->plan->steps.begin());
  Plan* const plan = OwnPlan(call.world, executable);
  if (plan == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  plan->steps[place].enabled = enabled != 0;
  return CUDA_SUCCESS;
}

CUresult api::GraphNodeGetEnabled(Call& call, CUgraphExec handle, CUgraphNode node, unsigned int* enabled) {
  const Executable* const executable = call.world.Find<Executable>(handle);
  const Step* const step = executable == nullptr ? nullptr : FindStep(call.world, executable, node);
  if (step == nullptr || enabled == nullptr || !CanDisable(step->type)) return CUDA_ERROR_INVALID_VALUE;
  *enabled = step->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
