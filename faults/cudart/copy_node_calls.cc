// SPDX-License-Identifier: MIT
// Copy nodes: described by a cudaMemcpy3DParms, as a row of bytes, or with a device variable on one side.
#include "faults/cudart/node_plan.h"
#include "faults/cudart/symbols.h"

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
