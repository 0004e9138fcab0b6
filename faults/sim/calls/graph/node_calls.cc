// SPDX-License-Identifier: MIT
// Nodes of each kind: added, asked, set.
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/memory_node.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/kernel/launch.h"
#include "faults/sim/operation/value_work.h"

namespace cuaudit::sim {
namespace {

constexpr CUgraphNodeType kKernel = CU_GRAPH_NODE_TYPE_KERNEL;

// True for the graph itself, and for one inside it, however deep.
bool LiesWithin(const Graph* graph, const Graph* outer) {
  while (graph != nullptr && graph != outer) graph = graph->parent == nullptr ? nullptr : graph->parent->graph;
  return graph != nullptr;
}

// Resolves graph and dependencies, then adds the node.
CUresult Add(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count, CUgraphNodeType type,
             const Work& work) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Dependencies earlier(call.world);
  const CUresult result = earlier.Resolve(handle, dependencies, count);
  if (result != CUDA_SUCCESS) return result;
  const Node* const node = AddNode(call.world, earlier.graph(), earlier.nodes().data(), count, type, work);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUgraphNode>(node);
  const bool holds_itself = work.type == WorkType::Child && LiesWithin(earlier.graph(), work.child);
  return holds_itself ? call.Undefined(CUDA_SUCCESS) : CUDA_SUCCESS;
}

// A conditional node gets its bodies at once, to be filled by the client.
CUresult AddConditional(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count,
                        CUDA_CONDITIONAL_NODE_PARAMS* parameters) {
  World& world = call.world;
  const Graph* const graph = world.Find<Graph>(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  CUresult result = ConditionalWorkOf(call, graph, parameters, &work);
  if (result != CUDA_SUCCESS) return result;
  result = Add(call, out, handle, dependencies, count, CU_GRAPH_NODE_TYPE_CONDITIONAL, work);
  if (result != CUDA_SUCCESS) {
    FreeBodies(world, work.conditional);
    return result;
  }
  Node* const node = world.Find<Node>(*out);
  world.Find<Conditional>(parameters->handle)->node = node;
  for (unsigned i = 0; i < parameters->size; ++i) world.Find<Graph>(work.conditional.phGraph_out[i])->parent = node;
  return CUDA_SUCCESS;
}

// Older toolkits know no ownership: a child is cloned.
bool IsMoved(const CUgraphNodeParams& parameters) {
#if CUDA_VERSION >= 13000
  return parameters.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
#else
  (void)parameters;
  return false;
#endif
}

// Copies and fills accept a null context, but not an invented one.
bool MayStandIn(const World& world, CUcontext context) { return context == nullptr || world.Find<Context>(context) != nullptr; }

bool MayBeCopied(const Graph* child) { return !OwnsMemory(child) && !HasConditional(child) && !child->IsChild(); }

// The graph itself becomes the node's, and its handle stays good for looking at it.
CUresult MoveChild(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count, CUgraph child_handle) {
  World& world = call.world;
  Graph* const child = world.Find<Graph>(child_handle);
  if (child == nullptr || child->capturing || child_handle == handle) return CUDA_ERROR_INVALID_VALUE;
  if (child->IsChild() || HasConditional(child)) return CUDA_ERROR_NOT_SUPPORTED;
  if (child->parent != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (LiesWithin(world.Find<Graph>(handle), child)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Add(call, out, handle, dependencies, count, CU_GRAPH_NODE_TYPE_EMPTY, Work());
  if (result != CUDA_SUCCESS) return result;
  Node* const node = world.Find<Node>(*out);
  node->type = CU_GRAPH_NODE_TYPE_GRAPH;
  node->work.type = WorkType::Child;
  node->work.child = child;
  child->parent = node;
  if (child->counted) world.Count(Kind::Graph, -1);
  child->counted = false;
  return CUDA_SUCCESS;
}

CUresult SetKernel(Call& call, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS& parameters) {
  Node* const node = FindNode(call, handle, kKernel);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const CUresult result = KernelWork(call, parameters, &work);
  if (result != CUDA_SUCCESS) return result;
  return SetNodeWork(call.world, node, work) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult SetWork(Node* node, CUresult result, const Work& work) {
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) node->work = work;
  return result;
}

// A node is added although its array or event is destroyed. Whoever instantiates the graph is refused (NodeOfNothing).
bool WereArrays(const World& world, const CUDA_MEMCPY3D& copy) {
  const auto good = [&](CUmemorytype type, CUarray array) {
    return type != CU_MEMORYTYPE_ARRAY || world.Find<Array>(array) != nullptr || world.Destroyed(array);
  };
  return good(copy.srcMemoryType, copy.srcArray) && good(copy.dstMemoryType, copy.dstArray);
}

CUresult NewEventWork(Call& call, CUevent event, WorkType type, Work* work) {
  if (!call.world.Destroyed(event)) return EventWork(call, event, type, work);
  work->type = type;
  work->event = event;
  return CUDA_SUCCESS;
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
  if (!MayStandIn(call.world, context)) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  CUresult result = CopyWork(call, parameters, &work);
  if (result == CUDA_ERROR_INVALID_HANDLE && WereArrays(call.world, *parameters)) result = CUDA_SUCCESS;
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY, work);
}

CUresult api::GraphAddMemsetNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                 const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext context) {
  if (!MayStandIn(call.world, context)) return CUDA_ERROR_INVALID_VALUE;
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
  if (!MayBeCopied(work.child)) return CUDA_ERROR_NOT_SUPPORTED;
  return Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_GRAPH, work);
}

CUresult api::GraphAddEventRecordNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                      CUevent event) {
  Work work;
  const CUresult result = NewEventWork(call, event, WorkType::Record, &work);
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD, work);
}

CUresult api::GraphAddEventWaitNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                    CUevent event) {
  Work work;
  const CUresult result = NewEventWork(call, event, WorkType::Wait, &work);
  return result != CUDA_SUCCESS ? result : Add(call, out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT, work);
}

CUresult api::GraphAddNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                           CUgraphNodeParams* parameters) {
  if (parameters != nullptr && parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    return AddConditional(call, out, graph, dependencies, count, &parameters->conditional);
  }
  if (parameters != nullptr && parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(parameters->alloc));
    CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
    std::memcpy(&alloc, &parameters->alloc, sizeof(alloc));
    const CUresult result = GraphAddMemAllocNode(call, out, graph, dependencies, count, &alloc);
    if (result == CUDA_SUCCESS) parameters->alloc.dptr = alloc.dptr;
    return result;
  }
  if (parameters != nullptr && parameters->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return GraphAddMemFreeNode(call, out, graph, dependencies, count, parameters->free.dptr);
  }
  if (parameters != nullptr && parameters->type == CU_GRAPH_NODE_TYPE_GRAPH && IsMoved(*parameters)) {
    return MoveChild(call, out, graph, dependencies, count, parameters->graph.graph);
  }
  Work work;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUresult result = WorkOf(call, parameters, &type, &work);
  if (result == CUDA_SUCCESS && work.type == WorkType::Child && !MayBeCopied(work.child)) return CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS) result = Add(call, out, graph, dependencies, count, type, work);
  if (work.arguments != nullptr) DropArguments(call.world, work);
  if (result == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_GRAPH) {
    parameters->graph.graph = ToHandle<CUgraph>(call.world.Find<Node>(*out)->work.child);
  }
  return result;
}

CUresult api::GraphAddNode_v2(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* edges,
                              std::size_t count, CUgraphNodeParams* parameters) {
  for (std::size_t i = 0; edges != nullptr && i < count; ++i) {
    const Node* const earlier = dependencies == nullptr ? nullptr : call.world.Find<Node>(dependencies[i]);
    const bool good = earlier != nullptr && parameters != nullptr && MayAnnotate(earlier->type, parameters->type, edges[i]);
    if (!good) return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = GraphAddNode(call, out, graph, dependencies, count, parameters);
  if (result != CUDA_SUCCESS || edges == nullptr) return result;
  Node* const node = call.world.Find<Node>(*out);
  for (std::size_t i = 0; i < count; ++i) node->edges[i] = edges[i];
  return CUDA_SUCCESS;
}

CUresult api::GraphChildGraphNodeGetGraph(Call& call, CUgraphNode handle, CUgraph* out) {
  const Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_GRAPH);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = ToHandle<CUgraph>(node->work.child);
  return CUDA_SUCCESS;
}

CUresult api::GraphKernelNodeGetParams(Call& call, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* out) {
  return ReadNode(call, handle, kKernel, &Work::kernel, out);
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
  return ReadNode(call, handle, CU_GRAPH_NODE_TYPE_MEMCPY, &Work::copy, out);
}

CUresult api::GraphMemcpyNodeSetParams(Call& call, CUgraphNode handle, const CUDA_MEMCPY3D* parameters) {
  Work work;
  const CUresult result = CopyWork(call, parameters, &work);
  return SetWork(FindNode(call, handle, CU_GRAPH_NODE_TYPE_MEMCPY), result, work);
}

CUresult api::GraphMemsetNodeGetParams(Call& call, CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* out) {
  return ReadNode(call, handle, CU_GRAPH_NODE_TYPE_MEMSET, &Work::fill, out);
}

CUresult api::GraphMemsetNodeSetParams(Call& call, CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS* parameters) {
  Work work;
  const CUresult result = FillWork(call, parameters, &work);
  return SetWork(FindNode(call, handle, CU_GRAPH_NODE_TYPE_MEMSET), result, work);
}

CUresult api::GraphHostNodeGetParams(Call& call, CUgraphNode handle, CUDA_HOST_NODE_PARAMS* out) {
  return ReadNode(call, handle, CU_GRAPH_NODE_TYPE_HOST, &Work::host, out);
}

CUresult api::GraphHostNodeSetParams(Call& call, CUgraphNode handle, const CUDA_HOST_NODE_PARAMS* parameters) {
  Work work;
  const CUresult result = HostWork(parameters, &work);
  return SetWork(FindNode(call, handle, CU_GRAPH_NODE_TYPE_HOST), result, work);
}

CUresult api::GraphEventRecordNodeGetEvent(Call& call, CUgraphNode handle, CUevent* out) {
  return ReadNode(call, handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &Work::event, out);
}

CUresult api::GraphEventRecordNodeSetEvent(Call& call, CUgraphNode handle, CUevent event) {
  Work work;
  const CUresult result = EventWork(call, event, WorkType::Record, &work);
  return SetWork(FindNode(call, handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD), result, work);
}

CUresult api::GraphEventWaitNodeGetEvent(Call& call, CUgraphNode handle, CUevent* out) {
  return ReadNode(call, handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &Work::event, out);
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
  if (result == CUDA_SUCCESS && work.arguments != nullptr) {
    Node* const node = FindNode(call, handle, type);
    DropArguments(call.world, node == nullptr ? work : node->work);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    node->work = work;
    return CUDA_SUCCESS;
  }
  return SetWork(FindNode(call, handle, type), result, work);
}

CUresult api::GraphAddBatchMemOpNode(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count,
                                     const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Dependencies earlier(call.world);
  CUresult result = earlier.Resolve(handle, dependencies, count);
  if (result != CUDA_SUCCESS) return result;
  Work work;
  result = BatchWork(call, parameters, &work);
  if (result != CUDA_SUCCESS) return result;
  const Node* const node = AddNode(call.world, earlier.graph(), earlier.nodes().data(), count, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work);
  DropArguments(call.world, work);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUgraphNode>(node);
  return CUDA_SUCCESS;
}

CUresult api::GraphBatchMemOpNodeGetParams(Call& call, CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS* out) {
  const Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->work.batch;
  return CUDA_SUCCESS;
}

CUresult api::GraphBatchMemOpNodeSetParams(Call& call, CUgraphNode handle, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  Node* const node = FindNode(call, handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const CUresult result = BatchWork(call, parameters, &work);
  if (result != CUDA_SUCCESS) return result;
  DropArguments(call.world, node->work);
  node->work = work;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
