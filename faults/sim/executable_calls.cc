// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/capture.h"
#include "faults/sim/executor.h"
#include "faults/sim/node.h"

namespace cuaudit::sim {
namespace {

constexpr unsigned long long kFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult Instantiate(Call& call, CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  Graph* const graph = call.world.Find<Graph>(handle);
  if (out == nullptr || graph == nullptr || graph->capturing || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  Executable* const executable = call.world.Make<Executable>(nullptr);
  if (executable == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  executable->flags = flags;
  const CUresult result = FillSteps(call.world, graph, executable);
  if (result != CUDA_SUCCESS) {
    FreeExecutable(call.world, executable);
    return result;
  }
  *out = ToHandle<CUgraphExec>(executable);
  return CUDA_SUCCESS;
}

CUresult SetStep(Call& call, CUgraphExec handle, CUgraphNode node, CUgraphNodeType type, CUresult result, const Work& work) {
  Step* const step = FindStep(call, handle, node);
  if (step == nullptr || step->type != type) return CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return result;
  WaitForLaunches(call, call.world.Find<Executable>(handle));
  step->work = work;
  return CUDA_SUCCESS;
}

// Same number of nodes with the same types in the same order: the update the driver promises to accept.
CUgraphExecUpdateResult Compare(const Executable& before, const Executable& after, std::uint64_t* culprit) {
  if (before.steps.size() != after.steps.size()) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (std::size_t i = 0; i < before.steps.size(); ++i) {
    if (before.steps[i].type == after.steps[i].type) continue;
    *culprit = after.steps[i].node;
    return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

}  // namespace

CUresult api::GraphInstantiateWithFlags(Call& call, CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return Instantiate(call, out, graph, flags);
}

CUresult api::GraphInstantiate(Call& call, CUgraphExec* out, CUgraph graph, CUgraphNode* error, char* log, std::size_t log_bytes) {
  if (error != nullptr) *error = nullptr;
  if (log != nullptr && log_bytes != 0) log[0] = '\0';
  return Instantiate(call, out, graph, 0);
}

CUresult api::GraphInstantiateWithParams(Call& call, CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Instantiate(call, out, graph, parameters->flags);
  parameters->hErrNode_out = nullptr;
  parameters->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult api::GraphExecDestroy(Call& call, CUgraphExec handle) {
  Executable* const executable = call.world.Find<Executable>(handle);
  if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (executable->in_flight == 0) {
    FreeExecutable(call.world, executable);
  } else {
    // The handle is gone; the last launch under way keeps what it needs, user objects included.
    call.world.Retire(executable);
    executable->destroyed = true;
  }
  return CUDA_SUCCESS;
}

CUresult api::GraphExecGetFlags(Call& call, CUgraphExec handle, cuuint64_t* flags) {
  const Executable* const executable = call.world.Find<Executable>(handle);
  if (executable == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = executable->flags;
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
  Work work;
  work.type = WorkType::Launch;
  work.executable = executable;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_GRAPH, work);
  if (result == CUDA_SUCCESS) ++executable->in_flight;
  return result;
}

CUresult api::GraphUpload(Call& call, CUgraphExec handle, CUstream stream_handle) {
  if (call.world.Find<Executable>(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, stream_handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture == nullptr) return Submit(call, stream, CU_GRAPH_NODE_TYPE_EMPTY, Work());
  Invalidate(stream->capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult api::GraphExecUpdate_v2(Call& call, CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
  World& world = call.world;
  Executable* const executable = world.Find<Executable>(handle);
  Graph* const graph = world.Find<Graph>(graph_handle);
  if (executable == nullptr || graph == nullptr || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Executable fresh;
  *info = {};
  const CUresult filled = FillSteps(world, graph, &fresh);
  if (filled != CUDA_SUCCESS) {
    LetGo(world, &fresh.holdings);
    fresh.steps.Clear(world.arena);
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return filled;
  }
  std::uint64_t culprit = 0;
  info->result = Compare(*executable, fresh, &culprit);
  info->errorNode = reinterpret_cast<CUgraphNode>(static_cast<std::uintptr_t>(culprit));
  if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
    WaitForLaunches(call, executable);
    // The nodes keep the names under which the executable was made.
    for (std::size_t i = 0; i < executable->steps.size(); ++i) executable->steps[i].work = fresh.steps[i].work;
    const Vector<Holding> old = executable->holdings;
    executable->holdings = fresh.holdings;
    fresh.holdings = old;
  }
  LetGo(world, &fresh.holdings);
  fresh.steps.Clear(world.arena);
  return info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
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

CUresult api::GraphExecNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node, CUgraphNodeParams* parameters) {
  Work work;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  const CUresult result = WorkOf(call, parameters, &type, &work);
  if (type == CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_NOT_SUPPORTED;
  return SetStep(call, handle, node, type, result, work);
}

CUresult api::GraphNodeSetEnabled(Call& call, CUgraphExec handle, CUgraphNode node, unsigned int enabled) {
  Step* const step = FindStep(call, handle, node);
  if (step == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool can =
      step->type == CU_GRAPH_NODE_TYPE_KERNEL || step->type == CU_GRAPH_NODE_TYPE_MEMSET || step->type == CU_GRAPH_NODE_TYPE_MEMCPY;
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  WaitForLaunches(call, call.world.Find<Executable>(handle));
  step->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

CUresult api::GraphNodeGetEnabled(Call& call, CUgraphExec handle, CUgraphNode node, unsigned int* enabled) {
  const Step* const step = FindStep(call, handle, node);
  if (step == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = step->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
