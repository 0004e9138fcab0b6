// SPDX-License-Identifier: MIT
// Graph nodes of each kind: adding them, asking for their parameters, changing those. Copies are described by a cudaMemcpy3DParms, as a row
// of bytes, or with a device variable on one side.

#include "faults/cudart/descriptions.h"
#include "faults/cudart/registry.h"

namespace cuaudit::cudart {
namespace {

cudaError_t Add(DriverRef driver, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                const CUDA_MEMCPY3D& plan) noexcept {
  CUcontext context = nullptr;
  if (const cudaError_t error = CurrentContext(driver, &context)) return error;
  return From(driver.GraphAddMemcpyNode(node, graph, dependencies, count, &plan, context));
}

cudaError_t Set(DriverRef driver, cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_MEMCPY3D& plan) noexcept {
  CUcontext context = nullptr;
  if (const cudaError_t error = CurrentContext(driver, &context)) return error;
  return From(driver.GraphExecMemcpyNodeSetParams(exec, node, &plan, context));
}

cudaError_t PlanIntoSymbol(DriverRef driver, const void* symbol, const void* src, size_t count, size_t offset, enum cudaMemcpyKind kind,
                           CUDA_MEMCPY3D* plan) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  CUdeviceptr address = 0;
  if (const cudaError_t error = Locate(driver, symbol, offset, count, &address)) return error;
  return PlanLinearCopy(Pointer(address), src, count, kind, plan);
}

cudaError_t PlanOutOfSymbol(DriverRef driver, void* dst, const void* symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                            CUDA_MEMCPY3D* plan) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  CUdeviceptr address = 0;
  if (const cudaError_t error = Locate(driver, symbol, offset, count, &address)) return error;
  return PlanLinearCopy(dst, Pointer(address), count, kind, plan);
}

}  // namespace

// any kind

cudaError_t GraphAddNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                         const cudaGraphEdgeData* dependencyData, size_t numDependencies, struct cudaGraphNodeParams* nodeParams) noexcept {
  CUgraphNodeParams plan;
  if (const cudaError_t error = PlanNode(driver, nodeParams, &plan)) return error;
  const CUresult result = driver.GraphAddNode(pGraphNode, graph, pDependencies, As(dependencyData), numDependencies, &plan);
  if (result == CUDA_SUCCESS) TakeResults(plan, nodeParams);
  return From(result);
}

cudaError_t GraphNodeSetParams(DriverRef driver, cudaGraphNode_t node, struct cudaGraphNodeParams* nodeParams) noexcept {
  CUgraphNodeParams plan;
  if (const cudaError_t error = PlanNode(driver, nodeParams, &plan)) return error;
  return From(driver.GraphNodeSetParams(node, &plan));
}

cudaError_t GraphExecNodeSetParams(DriverRef driver, cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                   struct cudaGraphNodeParams* nodeParams) noexcept {
  CUgraphNodeParams plan;
  if (const cudaError_t error = PlanNode(driver, nodeParams, &plan)) return error;
  return From(driver.GraphExecNodeSetParams(graphExec, node, &plan));
}

cudaError_t GraphAddEmptyNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                              size_t numDependencies) noexcept {
  return From(driver.GraphAddEmptyNode(pGraphNode, graph, pDependencies, numDependencies));
}

// kernel

cudaError_t GraphAddKernelNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                               size_t numDependencies, const struct cudaKernelNodeParams* pNodeParams) noexcept {
  CUDA_KERNEL_NODE_PARAMS plan;
  if (const cudaError_t error = PlanKernel(driver, pNodeParams, &plan)) return error;
  return From(driver.GraphAddKernelNode(pGraphNode, graph, pDependencies, numDependencies, &plan));
}

cudaError_t GraphKernelNodeGetParams(DriverRef driver, cudaGraphNode_t node, struct cudaKernelNodeParams* pNodeParams) noexcept {
  if (pNodeParams == nullptr) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS found{};
  const CUresult result = driver.GraphKernelNodeGetParams(node, &found);
  return result != CUDA_SUCCESS ? From(result) : KernelParameters(driver, found, pNodeParams);
}

cudaError_t GraphKernelNodeSetParams(DriverRef driver, cudaGraphNode_t node, const struct cudaKernelNodeParams* pNodeParams) noexcept {
  CUDA_KERNEL_NODE_PARAMS plan;
  if (const cudaError_t error = PlanKernel(driver, pNodeParams, &plan)) return error;
  return From(driver.GraphKernelNodeSetParams(node, &plan));
}

cudaError_t GraphExecKernelNodeSetParams(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams* pNodeParams) noexcept {
  CUDA_KERNEL_NODE_PARAMS plan;
  if (const cudaError_t error = PlanKernel(driver, pNodeParams, &plan)) return error;
  return From(driver.GraphExecKernelNodeSetParams(hGraphExec, node, &plan));
}

cudaError_t GraphKernelNodeCopyAttributes(DriverRef driver, cudaGraphNode_t hDst, cudaGraphNode_t hSrc) noexcept {
  return From(driver.GraphKernelNodeCopyAttributes(hDst, hSrc));
}

cudaError_t GraphKernelNodeGetAttribute(DriverRef driver, cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                        cudaLaunchAttributeValue* value_out) noexcept {
  return From(driver.GraphKernelNodeGetAttribute(hNode, As(attr), As(value_out)));
}

cudaError_t GraphKernelNodeSetAttribute(DriverRef driver, cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                        const cudaLaunchAttributeValue* value) noexcept {
  return From(driver.GraphKernelNodeSetAttribute(hNode, As(attr), As(value)));
}

// fill

cudaError_t GraphAddMemsetNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                               size_t numDependencies, const struct cudaMemsetParams* pMemsetParams) noexcept {
  CUcontext context = nullptr;
  if (const cudaError_t error = CurrentContext(driver, &context)) return error;
  return From(driver.GraphAddMemsetNode(pGraphNode, graph, pDependencies, numDependencies, As(pMemsetParams), context));
}

cudaError_t GraphMemsetNodeGetParams(DriverRef driver, cudaGraphNode_t node, struct cudaMemsetParams* pNodeParams) noexcept {
  return From(driver.GraphMemsetNodeGetParams(node, As(pNodeParams)));
}

cudaError_t GraphMemsetNodeSetParams(DriverRef driver, cudaGraphNode_t node, const struct cudaMemsetParams* pNodeParams) noexcept {
  return From(driver.GraphMemsetNodeSetParams(node, As(pNodeParams)));
}

cudaError_t GraphExecMemsetNodeSetParams(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                         const struct cudaMemsetParams* pNodeParams) noexcept {
  CUcontext context = nullptr;
  if (const cudaError_t error = CurrentContext(driver, &context)) return error;
  return From(driver.GraphExecMemsetNodeSetParams(hGraphExec, node, As(pNodeParams), context));
}

// host function

cudaError_t GraphAddHostNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                             size_t numDependencies, const struct cudaHostNodeParams* pNodeParams) noexcept {
  return From(driver.GraphAddHostNode(pGraphNode, graph, pDependencies, numDependencies, As(pNodeParams)));
}

cudaError_t GraphHostNodeGetParams(DriverRef driver, cudaGraphNode_t node, struct cudaHostNodeParams* pNodeParams) noexcept {
  return From(driver.GraphHostNodeGetParams(node, As(pNodeParams)));
}

cudaError_t GraphHostNodeSetParams(DriverRef driver, cudaGraphNode_t node, const struct cudaHostNodeParams* pNodeParams) noexcept {
  return From(driver.GraphHostNodeSetParams(node, As(pNodeParams)));
}

cudaError_t GraphExecHostNodeSetParams(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                       const struct cudaHostNodeParams* pNodeParams) noexcept {
  return From(driver.GraphExecHostNodeSetParams(hGraphExec, node, As(pNodeParams)));
}

// child graph

cudaError_t GraphAddChildGraphNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, cudaGraph_t childGraph) noexcept {
  return From(driver.GraphAddChildGraphNode(pGraphNode, graph, pDependencies, numDependencies, childGraph));
}

cudaError_t GraphChildGraphNodeGetGraph(DriverRef driver, cudaGraphNode_t node, cudaGraph_t* pGraph) noexcept {
  return From(driver.GraphChildGraphNodeGetGraph(node, pGraph));
}

cudaError_t GraphExecChildGraphNodeSetParams(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             cudaGraph_t childGraph) noexcept {
  return From(driver.GraphExecChildGraphNodeSetParams(hGraphExec, node, childGraph));
}

// events

cudaError_t GraphAddEventRecordNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                    size_t numDependencies, cudaEvent_t event) noexcept {
  return From(driver.GraphAddEventRecordNode(pGraphNode, graph, pDependencies, numDependencies, event));
}

cudaError_t GraphEventRecordNodeGetEvent(DriverRef driver, cudaGraphNode_t node, cudaEvent_t* event_out) noexcept {
  return From(driver.GraphEventRecordNodeGetEvent(node, event_out));
}

cudaError_t GraphEventRecordNodeSetEvent(DriverRef driver, cudaGraphNode_t node, cudaEvent_t event) noexcept {
  return From(driver.GraphEventRecordNodeSetEvent(node, event));
}

cudaError_t GraphExecEventRecordNodeSetEvent(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                             cudaEvent_t event) noexcept {
  return From(driver.GraphExecEventRecordNodeSetEvent(hGraphExec, hNode, event));
}

cudaError_t GraphAddEventWaitNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                  size_t numDependencies, cudaEvent_t event) noexcept {
  return From(driver.GraphAddEventWaitNode(pGraphNode, graph, pDependencies, numDependencies, event));
}

cudaError_t GraphEventWaitNodeGetEvent(DriverRef driver, cudaGraphNode_t node, cudaEvent_t* event_out) noexcept {
  return From(driver.GraphEventWaitNodeGetEvent(node, event_out));
}

cudaError_t GraphEventWaitNodeSetEvent(DriverRef driver, cudaGraphNode_t node, cudaEvent_t event) noexcept {
  return From(driver.GraphEventWaitNodeSetEvent(node, event));
}

cudaError_t GraphExecEventWaitNodeSetEvent(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                           cudaEvent_t event) noexcept {
  return From(driver.GraphExecEventWaitNodeSetEvent(hGraphExec, hNode, event));
}

// memory

cudaError_t GraphAddMemAllocNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                 size_t numDependencies, struct cudaMemAllocNodeParams* nodeParams) noexcept {
  return From(driver.GraphAddMemAllocNode(pGraphNode, graph, pDependencies, numDependencies, As(nodeParams)));
}

cudaError_t GraphMemAllocNodeGetParams(DriverRef driver, cudaGraphNode_t node, struct cudaMemAllocNodeParams* params_out) noexcept {
  return From(driver.GraphMemAllocNodeGetParams(node, As(params_out)));
}

cudaError_t GraphAddMemFreeNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                size_t numDependencies, void* dptr) noexcept {
  return From(driver.GraphAddMemFreeNode(pGraphNode, graph, pDependencies, numDependencies, Address(dptr)));
}

// The address is written to `dptr_out`, although its type is void*.
cudaError_t GraphMemFreeNodeGetParams(DriverRef driver, cudaGraphNode_t node, void* dptr_out) noexcept {
  return From(driver.GraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr*>(dptr_out)));
}

// external semaphores

cudaError_t GraphAddExternalSemaphoresSignalNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                                 const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                                 const struct cudaExternalSemaphoreSignalNodeParams* nodeParams) noexcept {
  return From(driver.GraphAddExternalSemaphoresSignalNode(pGraphNode, graph, pDependencies, numDependencies, As(nodeParams)));
}

cudaError_t GraphExternalSemaphoresSignalNodeGetParams(DriverRef driver, cudaGraphNode_t hNode,
                                                       struct cudaExternalSemaphoreSignalNodeParams* params_out) noexcept {
  return From(driver.GraphExternalSemaphoresSignalNodeGetParams(hNode, As(params_out)));
}

cudaError_t GraphExternalSemaphoresSignalNodeSetParams(DriverRef driver, cudaGraphNode_t hNode,
                                                       const struct cudaExternalSemaphoreSignalNodeParams* nodeParams) noexcept {
  return From(driver.GraphExternalSemaphoresSignalNodeSetParams(hNode, As(nodeParams)));
}

cudaError_t GraphExecExternalSemaphoresSignalNodeSetParams(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                                           const struct cudaExternalSemaphoreSignalNodeParams* nodeParams) noexcept {
  return From(driver.GraphExecExternalSemaphoresSignalNodeSetParams(hGraphExec, hNode, As(nodeParams)));
}

cudaError_t GraphAddExternalSemaphoresWaitNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                               const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                               const struct cudaExternalSemaphoreWaitNodeParams* nodeParams) noexcept {
  return From(driver.GraphAddExternalSemaphoresWaitNode(pGraphNode, graph, pDependencies, numDependencies, As(nodeParams)));
}

cudaError_t GraphExternalSemaphoresWaitNodeGetParams(DriverRef driver, cudaGraphNode_t hNode,
                                                     struct cudaExternalSemaphoreWaitNodeParams* params_out) noexcept {
  return From(driver.GraphExternalSemaphoresWaitNodeGetParams(hNode, As(params_out)));
}

cudaError_t GraphExternalSemaphoresWaitNodeSetParams(DriverRef driver, cudaGraphNode_t hNode,
                                                     const struct cudaExternalSemaphoreWaitNodeParams* nodeParams) noexcept {
  return From(driver.GraphExternalSemaphoresWaitNodeSetParams(hNode, As(nodeParams)));
}

cudaError_t GraphExecExternalSemaphoresWaitNodeSetParams(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                                         const struct cudaExternalSemaphoreWaitNodeParams* nodeParams) noexcept {
  return From(driver.GraphExecExternalSemaphoresWaitNodeSetParams(hGraphExec, hNode, As(nodeParams)));
}

cudaError_t GraphAddMemcpyNode(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                               size_t numDependencies, const struct cudaMemcpy3DParms* pCopyParams) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanCopyNode(driver, pCopyParams, &plan)) return error;
  return Add(driver, pGraphNode, graph, pDependencies, numDependencies, plan);
}

cudaError_t GraphMemcpyNodeGetParams(DriverRef driver, cudaGraphNode_t node, struct cudaMemcpy3DParms* pNodeParams) noexcept {
  if (pNodeParams == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D found{};
  const CUresult result = driver.GraphMemcpyNodeGetParams(node, &found);
  return result != CUDA_SUCCESS ? From(result) : CopyParameters(driver, found, pNodeParams);
}

cudaError_t GraphMemcpyNodeSetParams(DriverRef driver, cudaGraphNode_t node, const struct cudaMemcpy3DParms* pNodeParams) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanCopyNode(driver, pNodeParams, &plan)) return error;
  return From(driver.GraphMemcpyNodeSetParams(node, &plan));
}

cudaError_t GraphExecMemcpyNodeSetParams(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms* pNodeParams) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanCopyNode(driver, pNodeParams, &plan)) return error;
  return Set(driver, hGraphExec, node, plan);
}

cudaError_t GraphAddMemcpyNode1D(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                 size_t numDependencies, void* dst, const void* src, size_t count, enum cudaMemcpyKind kind) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanLinearCopy(dst, src, count, kind, &plan)) return error;
  return Add(driver, pGraphNode, graph, pDependencies, numDependencies, plan);
}

cudaError_t GraphMemcpyNodeSetParams1D(DriverRef driver, cudaGraphNode_t node, void* dst, const void* src, size_t count,
                                       enum cudaMemcpyKind kind) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanLinearCopy(dst, src, count, kind, &plan)) return error;
  return From(driver.GraphMemcpyNodeSetParams(node, &plan));
}

cudaError_t GraphExecMemcpyNodeSetParams1D(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void* dst, const void* src,
                                           size_t count, enum cudaMemcpyKind kind) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanLinearCopy(dst, src, count, kind, &plan)) return error;
  return Set(driver, hGraphExec, node, plan);
}

cudaError_t GraphAddMemcpyNodeToSymbol(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t* pDependencies, size_t numDependencies, const void* symbol, const void* src,
                                       size_t count, size_t offset, enum cudaMemcpyKind kind) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanIntoSymbol(driver, symbol, src, count, offset, kind, &plan)) return error;
  return Add(driver, pGraphNode, graph, pDependencies, numDependencies, plan);
}

cudaError_t GraphAddMemcpyNodeFromSymbol(DriverRef driver, cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                         const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dst, const void* symbol,
                                         size_t count, size_t offset, enum cudaMemcpyKind kind) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanOutOfSymbol(driver, dst, symbol, count, offset, kind, &plan)) return error;
  return Add(driver, pGraphNode, graph, pDependencies, numDependencies, plan);
}

cudaError_t GraphMemcpyNodeSetParamsToSymbol(DriverRef driver, cudaGraphNode_t node, const void* symbol, const void* src, size_t count,
                                             size_t offset, enum cudaMemcpyKind kind) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanIntoSymbol(driver, symbol, src, count, offset, kind, &plan)) return error;
  return From(driver.GraphMemcpyNodeSetParams(node, &plan));
}

cudaError_t GraphMemcpyNodeSetParamsFromSymbol(DriverRef driver, cudaGraphNode_t node, void* dst, const void* symbol, size_t count,
                                               size_t offset, enum cudaMemcpyKind kind) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanOutOfSymbol(driver, dst, symbol, count, offset, kind, &plan)) return error;
  return From(driver.GraphMemcpyNodeSetParams(node, &plan));
}

cudaError_t GraphExecMemcpyNodeSetParamsToSymbol(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t node, const void* symbol,
                                                 const void* src, size_t count, size_t offset, enum cudaMemcpyKind kind) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanIntoSymbol(driver, symbol, src, count, offset, kind, &plan)) return error;
  return Set(driver, hGraphExec, node, plan);
}

cudaError_t GraphExecMemcpyNodeSetParamsFromSymbol(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void* dst,
                                                   const void* symbol, size_t count, size_t offset, enum cudaMemcpyKind kind) noexcept {
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = PlanOutOfSymbol(driver, dst, symbol, count, offset, kind, &plan)) return error;
  return Set(driver, hGraphExec, node, plan);
}

}  // namespace cuaudit::cudart
