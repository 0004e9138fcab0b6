// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/node.h"

namespace cuaudit::sim {
namespace {

constexpr CUgraphNodeType kKernel = CU_GRAPH_NODE_TYPE_KERNEL;

// Resolves graph and dependencies, then adds the node.
CUresult Add(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count, CUgraphNodeType type,
             const Work& work) {
  World& world = call.world;
  Graph* const graph = world.Find<Graph>(handle);
  if (out == nullptr || graph == nullptr || (count != 0 && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Vector<Node*> earlier;
  CUresult result = CUDA_SUCCESS;
  for (std::size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    Node* const node = world.Find<Node>(dependencies[i]);
    if (node == nullptr || node->graph != graph || earlier.Contains(node)) {
      result = CUDA_ERROR_INVALID_VALUE;
    } else if (!earlier.Push(world.arena, node)) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  if (result == CUDA_SUCCESS) {
    const Node* const node = AddNode(world, graph, earlier.data(), count, type, work);
    if (node == nullptr) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
      *out = ToHandle<CUgraphNode>(node);
    }
  }
  earlier.Clear(world.arena);
  return result;
}

CUresult SetKernel(Call& call, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS& parameters) {
  Node* const node = FindNode(call, handle, kKernel);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const CUresult result = KernelWork(call, parameters, &work);
  if (result != CUDA_SUCCESS) return result;
  node->work = work;
  return KeepArguments(call.world, node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult SetWork(Node* node, CUresult result, const Work& work) {
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) node->work = work;
  return result;
}

}  // namespace

CUresult api::GraphAddEmptyNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count) {
  return Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EMPTY, Work());
}

CUresult api::GraphAddKernelNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const CUresult result = KernelWork(call, Widen(*parameters), &work);
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, kKernel, work);
}

CUresult api::GraphAddKernelNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const CUresult result = KernelWork(call, *parameters, &work);
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, kKernel, work);
}

CUresult api::GraphAddMemcpyNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                 const CUDA_MEMCPY3D* parameters, CUcontext context) {
  if (call.world.Find<Context>(context) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const CUresult result = CopyWork(call, parameters, &work);
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY, work);
}

CUresult api::GraphAddMemsetNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                 const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext context) {
  if (call.world.Find<Context>(context) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const CUresult result = FillWork(call, parameters, &work);
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMSET, work);
}

CUresult api::GraphAddHostNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                               const CUDA_HOST_NODE_PARAMS* parameters) {
  Work work;
  const CUresult result = HostWork(parameters, &work);
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_HOST, work);
}

CUresult api::GraphAddChildGraphNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                     CUgraph child) {
  Work work;
  work.type = WorkType::Child;
  work.child = call.world.Find<Graph>(child);
  if (work.child == nullptr || child == graph) return CUDA_ERROR_INVALID_VALUE;
  return Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_GRAPH, work);
}

CUresult api::GraphAddEventRecordNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                      CUevent event) {
  Work work;
  const CUresult result = EventWork(call, event, WorkType::Record, &work);
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD, work);
}

CUresult api::GraphAddEventWaitNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                    CUevent event) {
  Work work;
  const CUresult result = EventWork(call, event, WorkType::Wait, &work);
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT, work);
}

CUresult api::GraphAddNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                           CUgraphNodeParams* parameters) {
  Work work;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUresult result = WorkOf(call, parameters, &type, &work);
  if (result == CUDA_SUCCESS) result = Add(call, out, graph, dependencies, count, type, work);
  if (result == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_GRAPH) {
    parameters->graph.graph = ToHandle<CUgraph>(call.world.Find<Node>(*out)->work.child);
  }
  return result;
}

CUresult api::GraphAddNode_v2(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData*,
                              std::size_t count, CUgraphNodeParams* parameters) {
  return GraphAddNode(call, out, graph, dependencies, count, parameters);
}

CUresult api::GraphChildGraphNodeGetGraph(Call& call, CUgraphNode handle, CUgraph* out) {
  const Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_GRAPH);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = ToHandle<CUgraph>(node->work.child);
  return CUDA_SUCCESS;
}

CUresult api::GraphKernelNodeGetParams(Call& call, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* out) {
  const Node* const node = FindNode(call, handle, kKernel);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->work.kernel;
  return CUDA_SUCCESS;
}

CUresult api::GraphKernelNodeGetParams(Call& call, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  const Node* const node = FindNode(call, handle, kKernel);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS& from = node->work.kernel;
  *out = {from.func,      from.gridDimX,  from.gridDimY,       from.gridDimZ,     from.blockDimX,
          from.blockDimY, from.blockDimZ, from.sharedMemBytes, from.kernelParams, from.extra};
  return CUDA_SUCCESS;
}

CUresult api::GraphKernelNodeSetParams(Call& call, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE : SetKernel(call, handle, *parameters);
}
CUresult api::GraphKernelNodeSetParams(Call& call, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE : SetKernel(call, handle, Widen(*parameters));
}

CUresult api::GraphMemcpyNodeGetParams(Call& call, CUgraphNode handle, CUDA_MEMCPY3D* out) {
  const Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_MEMCPY);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->work.copy;
  return CUDA_SUCCESS;
}

CUresult api::GraphMemcpyNodeSetParams(Call& call, CUgraphNode handle, const CUDA_MEMCPY3D* parameters) {
  Work work;
  const CUresult result = CopyWork(call, parameters, &work);
  return SetWork(FindNode(call, handle, CU_GRAPH_NODE_TYPE_MEMCPY), result, work);
}

CUresult api::GraphMemsetNodeGetParams(Call& call, CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* out) {
  const Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_MEMSET);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->work.fill;
  return CUDA_SUCCESS;
}

CUresult api::GraphMemsetNodeSetParams(Call& call, CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS* parameters) {
  Work work;
  const CUresult result = FillWork(call, parameters, &work);
  return SetWork(FindNode(call, handle, CU_GRAPH_NODE_TYPE_MEMSET), result, work);
}

CUresult api::GraphHostNodeGetParams(Call& call, CUgraphNode handle, CUDA_HOST_NODE_PARAMS* out) {
  const Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_HOST);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->work.host;
  return CUDA_SUCCESS;
}

CUresult api::GraphHostNodeSetParams(Call& call, CUgraphNode handle, const CUDA_HOST_NODE_PARAMS* parameters) {
  Work work;
  const CUresult result = HostWork(parameters, &work);
  return SetWork(FindNode(call, handle, CU_GRAPH_NODE_TYPE_HOST), result, work);
}

CUresult api::GraphEventRecordNodeGetEvent(Call& call, CUgraphNode handle, CUevent* out) {
  const Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->work.event;
  return CUDA_SUCCESS;
}

CUresult api::GraphEventRecordNodeSetEvent(Call& call, CUgraphNode handle, CUevent event) {
  Work work;
  const CUresult result = EventWork(call, event, WorkType::Record, &work);
  return SetWork(FindNode(call, handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD), result, work);
}

CUresult api::GraphEventWaitNodeGetEvent(Call& call, CUgraphNode handle, CUevent* out) {
  const Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->work.event;
  return CUDA_SUCCESS;
}

CUresult api::GraphEventWaitNodeSetEvent(Call& call, CUgraphNode handle, CUevent event) {
  Work work;
  const CUresult result = EventWork(call, event, WorkType::Wait, &work);
  return SetWork(FindNode(call, handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT), result, work);
}

CUresult api::GraphNodeSetParams(Call& call, CUgraphNode handle, CUgraphNodeParams* parameters) {
  Work work;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  const CUresult result = WorkOf(call, parameters, &type, &work);
  if (result == CUDA_SUCCESS && type == kKernel) return SetKernel(call, handle, work.kernel);
  if (type == CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_NOT_SUPPORTED;
  return SetWork(FindNode(call, handle, type), result, work);
}

}  // namespace cuaudit::sim
