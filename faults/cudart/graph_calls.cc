// SPDX-License-Identifier: MIT
// Graphs as a whole: creation, topology, instantiation, launch, update, user objects.
#include "faults/cudart/devices.h"
#include "faults/cudart/node_plan.h"

namespace cuaudit::cudart {

cudaError_t GraphCreate(DriverRef driver, cudaGraph_t* pGraph, unsigned int flags) noexcept {
  return From(driver.GraphCreate(pGraph, flags));
}

cudaError_t GraphDestroy(DriverRef driver, cudaGraph_t graph) noexcept { return From(driver.GraphDestroy(graph)); }

cudaError_t GraphClone(DriverRef driver, cudaGraph_t* pGraphClone, cudaGraph_t originalGraph) noexcept {
  return From(driver.GraphClone(pGraphClone, originalGraph));
}

cudaError_t GraphNodeFindInClone(DriverRef driver, cudaGraphNode_t* pNode, cudaGraphNode_t originalNode, cudaGraph_t clonedGraph) noexcept {
  return From(driver.GraphNodeFindInClone(pNode, originalNode, clonedGraph));
}

cudaError_t GraphDebugDotPrint(DriverRef driver, cudaGraph_t graph, const char* path, unsigned int flags) noexcept {
  return From(driver.GraphDebugDotPrint(graph, path, flags));
}

cudaError_t GraphGetNodes(DriverRef driver, cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes) noexcept {
  return From(driver.GraphGetNodes(graph, nodes, numNodes));
}

cudaError_t GraphGetRootNodes(DriverRef driver, cudaGraph_t graph, cudaGraphNode_t* pRootNodes, size_t* pNumRootNodes) noexcept {
  return From(driver.GraphGetRootNodes(graph, pRootNodes, pNumRootNodes));
}

cudaError_t GraphGetEdges(DriverRef driver, cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edgeData,
                          size_t* numEdges) noexcept {
  return From(driver.GraphGetEdges(graph, from, to, As(edgeData), numEdges));
}

cudaError_t GraphNodeGetDependencies(DriverRef driver, cudaGraphNode_t node, cudaGraphNode_t* pDependencies, cudaGraphEdgeData* edgeData,
                                     size_t* pNumDependencies) noexcept {
  return From(driver.GraphNodeGetDependencies(node, pDependencies, As(edgeData), pNumDependencies));
}

cudaError_t GraphNodeGetDependentNodes(DriverRef driver, cudaGraphNode_t node, cudaGraphNode_t* pDependentNodes,
                                       cudaGraphEdgeData* edgeData, size_t* pNumDependentNodes) noexcept {
  return From(driver.GraphNodeGetDependentNodes(node, pDependentNodes, As(edgeData), pNumDependentNodes));
}

cudaError_t GraphAddDependencies(DriverRef driver, cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                 const cudaGraphEdgeData* edgeData, size_t numDependencies) noexcept {
  return From(driver.GraphAddDependencies(graph, from, to, As(edgeData), numDependencies));
}

cudaError_t GraphRemoveDependencies(DriverRef driver, cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                    const cudaGraphEdgeData* edgeData, size_t numDependencies) noexcept {
  return From(driver.GraphRemoveDependencies(graph, from, to, As(edgeData), numDependencies));
}

cudaError_t GraphDestroyNode(DriverRef driver, cudaGraphNode_t node) noexcept { return From(driver.GraphDestroyNode(node)); }

cudaError_t GraphNodeGetType(DriverRef driver, cudaGraphNode_t node, enum cudaGraphNodeType* pType) noexcept {
  return From(driver.GraphNodeGetType(node, As(pType)));
}

cudaError_t GraphInstantiate(DriverRef driver, cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) noexcept {
  return From(driver.GraphInstantiateWithFlags(pGraphExec, graph, flags));
}

cudaError_t GraphInstantiateWithFlags(DriverRef driver, cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) noexcept {
  return From(driver.GraphInstantiateWithFlags(pGraphExec, graph, flags));
}

cudaError_t GraphInstantiateWithParams(DriverRef driver, cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                       cudaGraphInstantiateParams* instantiateParams) noexcept {
  return From(driver.GraphInstantiateWithParams(pGraphExec, graph, As(instantiateParams)));
}

cudaError_t GraphExecGetFlags(DriverRef driver, cudaGraphExec_t graphExec, unsigned long long* flags) noexcept {
  static_assert(sizeof(cuuint64_t) == sizeof(unsigned long long));
  return From(driver.GraphExecGetFlags(graphExec, reinterpret_cast<cuuint64_t*>(flags)));
}

cudaError_t GraphExecUpdate(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                            cudaGraphExecUpdateResultInfo* resultInfo) noexcept {
  CUgraphExecUpdateResultInfo ignored{};
  return From(driver.GraphExecUpdate(hGraphExec, hGraph, resultInfo != nullptr ? As(resultInfo) : &ignored));
}

cudaError_t GraphUpload(DriverRef driver, cudaGraphExec_t graphExec, cudaStream_t stream) noexcept {
  return From(driver.GraphUpload(graphExec, stream));
}

cudaError_t GraphLaunch(DriverRef driver, cudaGraphExec_t graphExec, cudaStream_t stream) noexcept {
  return From(driver.GraphLaunch(graphExec, stream));
}

cudaError_t GraphExecDestroy(DriverRef driver, cudaGraphExec_t graphExec) noexcept { return From(driver.GraphExecDestroy(graphExec)); }

cudaError_t GraphNodeSetEnabled(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int isEnabled) noexcept {
  return From(driver.GraphNodeSetEnabled(hGraphExec, hNode, isEnabled));
}

cudaError_t GraphNodeGetEnabled(DriverRef driver, cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int* isEnabled) noexcept {
  return From(driver.GraphNodeGetEnabled(hGraphExec, hNode, isEnabled));
}

cudaError_t GraphConditionalHandleCreate(DriverRef driver, cudaGraphConditionalHandle* pHandle_out, cudaGraph_t graph,
                                         unsigned int defaultLaunchValue, unsigned int flags) noexcept {
  CUcontext context = nullptr;
  if (const cudaError_t error = CurrentContext(driver, &context)) return error;
  static_assert(sizeof(cudaGraphConditionalHandle) == sizeof(CUgraphConditionalHandle));
  return From(driver.GraphConditionalHandleCreate(reinterpret_cast<CUgraphConditionalHandle*>(pHandle_out), graph, context,
                                                  defaultLaunchValue, flags));
}

cudaError_t UserObjectCreate(DriverRef driver, cudaUserObject_t* object_out, void* ptr, cudaHostFn_t destroy, unsigned int initialRefcount,
                             unsigned int flags) noexcept {
  return From(driver.UserObjectCreate(object_out, ptr, destroy, initialRefcount, flags));
}

cudaError_t UserObjectRetain(DriverRef driver, cudaUserObject_t object, unsigned int count) noexcept {
  return From(driver.UserObjectRetain(object, count));
}

cudaError_t UserObjectRelease(DriverRef driver, cudaUserObject_t object, unsigned int count) noexcept {
  return From(driver.UserObjectRelease(object, count));
}

cudaError_t GraphRetainUserObject(DriverRef driver, cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                  unsigned int flags) noexcept {
  return From(driver.GraphRetainUserObject(graph, object, count, flags));
}

cudaError_t GraphReleaseUserObject(DriverRef driver, cudaGraph_t graph, cudaUserObject_t object, unsigned int count) noexcept {
  return From(driver.GraphReleaseUserObject(graph, object, count));
}

cudaError_t DeviceGraphMemTrim(DriverRef driver, int device) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  return From(driver.DeviceGraphMemTrim(DeviceAt(device)));
}

cudaError_t DeviceGetGraphMemAttribute(DriverRef driver, int device, enum cudaGraphMemAttributeType attr, void* value) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  return From(driver.DeviceGetGraphMemAttribute(DeviceAt(device), As(attr), value));
}

cudaError_t DeviceSetGraphMemAttribute(DriverRef driver, int device, enum cudaGraphMemAttributeType attr, void* value) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  return From(driver.DeviceSetGraphMemAttribute(DeviceAt(device), As(attr), value));
}

}  // namespace cuaudit::cudart
