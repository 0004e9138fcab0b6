// SPDX-License-Identifier: MIT
// Graphs as a whole: creation, topology, instantiation, launch, update, user objects.
#include "faults/cudart/descriptions.h"
#include "faults/cudart/process.h"

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

namespace {

bool OnHost(CUmemorytype type) noexcept { return type == CU_MEMORYTYPE_HOST; }

// An array is device memory. A unified address on either side can only come from cudaMemcpyDefault.
enum cudaMemcpyKind KindOf(CUmemorytype from, CUmemorytype to) noexcept {
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  if (OnHost(from)) return OnHost(to) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return OnHost(to) ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

size_t PerElement(size_t bytes, size_t element) noexcept { return element == 0 ? bytes : bytes / element; }

cudaError_t PlanKernelPart(DriverRef driver, const cudaKernelNodeParamsV2& from, CUDA_KERNEL_NODE_PARAMS_v3* plan) noexcept {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = ResolveKernel(driver, from.func, &kernel)) return error;
  *plan = {};
  plan->kern = kernel;
  plan->gridDimX = from.gridDim.x;
  plan->gridDimY = from.gridDim.y;
  plan->gridDimZ = from.gridDim.z;
  plan->blockDimX = from.blockDim.x;
  plan->blockDimY = from.blockDim.y;
  plan->blockDimZ = from.blockDim.z;
  plan->sharedMemBytes = from.sharedMemBytes;
  plan->kernelParams = from.kernelParams;
  plan->extra = from.extra;
  return cudaSuccess;
}

}  // namespace

cudaError_t CurrentContext(DriverRef driver, CUcontext* context) noexcept {
  *context = nullptr;
  return FromDriver(driver.CtxGetCurrent(context));
}

cudaError_t PlanKernel(DriverRef driver, const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* plan) noexcept {
  if (from == nullptr) return cudaErrorInvalidValue;
  static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3));
  const cudaKernelNodeParamsV2 same{from->func, from->gridDim, from->blockDim, from->sharedMemBytes, from->kernelParams, from->extra};
  return PlanKernelPart(driver, same, reinterpret_cast<CUDA_KERNEL_NODE_PARAMS_v3*>(plan));
}

cudaError_t KernelParameters(DriverRef driver, const CUDA_KERNEL_NODE_PARAMS& from, cudaKernelNodeParams* parameters) noexcept {
  const void* const host = HostOf(driver, from.kern, from.func);
  if (host == nullptr) return cudaErrorInvalidDeviceFunction;
  cudaKernelNodeParams to{};
  to.func = const_cast<void*>(host);
  to.gridDim = {from.gridDimX, from.gridDimY, from.gridDimZ};
  to.blockDim = {from.blockDimX, from.blockDimY, from.blockDimZ};
  to.sharedMemBytes = from.sharedMemBytes;
  to.kernelParams = from.kernelParams;
  to.extra = from.extra;
  *parameters = to;
  return cudaSuccess;
}

cudaError_t PlanCopyNode(DriverRef driver, const cudaMemcpy3DParms* from, CUDA_MEMCPY3D* plan) noexcept {
  return from == nullptr ? cudaErrorInvalidValue : Plan3D(driver, *from, plan);
}

cudaError_t PlanLinearCopy(void* to, const void* from, size_t count, enum cudaMemcpyKind kind, CUDA_MEMCPY3D* plan) noexcept {
  if (!IsKind(kind)) return cudaErrorInvalidMemcpyDirection;
  *plan = {};
  plan->srcMemoryType = SourceType(kind);
  plan->srcHost = OnHost(plan->srcMemoryType) ? from : nullptr;
  plan->srcDevice = OnHost(plan->srcMemoryType) ? 0 : Address(from);
  plan->srcPitch = count;
  plan->srcHeight = 1;
  plan->dstMemoryType = DestinationType(kind);
  plan->dstHost = OnHost(plan->dstMemoryType) ? to : nullptr;
  plan->dstDevice = OnHost(plan->dstMemoryType) ? 0 : Address(to);
  plan->dstPitch = count;
  plan->dstHeight = 1;
  plan->WidthInBytes = count;
  plan->Height = 1;
  plan->Depth = 1;
  return cudaSuccess;
}

cudaError_t CopyParameters(DriverRef driver, const CUDA_MEMCPY3D& from, cudaMemcpy3DParms* parameters) noexcept {
  size_t source_element = 0;
  size_t destination_element = 0;
  cudaMemcpy3DParms to{};
  if (from.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
    to.srcArray = reinterpret_cast<cudaArray_t>(from.srcArray);
    if (const cudaError_t error = ElementBytes(driver, to.srcArray, &source_element)) return error;
  } else {
    void* const pointer = OnHost(from.srcMemoryType) ? const_cast<void*>(from.srcHost) : Pointer(from.srcDevice);
    to.srcPtr = {pointer, from.srcPitch, 0, from.srcHeight};
  }
  if (from.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    to.dstArray = reinterpret_cast<cudaArray_t>(from.dstArray);
    if (const cudaError_t error = ElementBytes(driver, to.dstArray, &destination_element)) return error;
  } else {
    void* const pointer = OnHost(from.dstMemoryType) ? from.dstHost : Pointer(from.dstDevice);
    to.dstPtr = {pointer, from.dstPitch, 0, from.dstHeight};
  }
  to.srcPos = {PerElement(from.srcXInBytes, source_element), from.srcY, from.srcZ};
  to.dstPos = {PerElement(from.dstXInBytes, destination_element), from.dstY, from.dstZ};
  const size_t element = source_element != 0 ? source_element : destination_element;
  to.extent = {PerElement(from.WidthInBytes, element), from.Height, from.Depth};
  to.kind = KindOf(from.srcMemoryType, from.dstMemoryType);
  *parameters = to;
  return cudaSuccess;
}

cudaError_t PlanNode(DriverRef driver, const cudaGraphNodeParams* from, CUgraphNodeParams* plan) noexcept {
  if (from == nullptr) return cudaErrorInvalidValue;
  *plan = {};
  plan->type = As(from->type);
  CUcontext context = nullptr;
  if (const cudaError_t error = CurrentContext(driver, &context)) return error;
  switch (from->type) {
    case cudaGraphNodeTypeKernel:
      return PlanKernelPart(driver, from->kernel, &plan->kernel);
    case cudaGraphNodeTypeMemcpy:
      plan->memcpy.flags = from->memcpy.flags;
      plan->memcpy.copyCtx = context;
      return Plan3D(driver, from->memcpy.copyParams, &plan->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParamsV2& memset = from->memset;
      plan->memset = {Address(memset.dst), memset.pitch, memset.value, memset.elementSize, memset.width, memset.height, context};
      return cudaSuccess;
    }
    case cudaGraphNodeTypeHost:
      plan->host.fn = from->host.fn;
      plan->host.userData = from->host.userData;
      return cudaSuccess;
    case cudaGraphNodeTypeGraph:
      plan->graph.graph = from->graph.graph;
      plan->graph.ownership = std::bit_cast<CUgraphChildGraphNodeOwnership>(from->graph.ownership);
      return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
      plan->eventWait.event = from->eventWait.event;
      return cudaSuccess;
    case cudaGraphNodeTypeEventRecord:
      plan->eventRecord.event = from->eventRecord.event;
      return cudaSuccess;
    case cudaGraphNodeTypeExtSemaphoreSignal:
      plan->extSemSignal.extSemArray = As(from->extSemSignal.extSemArray);
      plan->extSemSignal.paramsArray = As(from->extSemSignal.paramsArray);
      plan->extSemSignal.numExtSems = from->extSemSignal.numExtSems;
      return cudaSuccess;
    case cudaGraphNodeTypeExtSemaphoreWait:
      plan->extSemWait.extSemArray = As(from->extSemWait.extSemArray);
      plan->extSemWait.paramsArray = As(from->extSemWait.paramsArray);
      plan->extSemWait.numExtSems = from->extSemWait.numExtSems;
      return cudaSuccess;
    case cudaGraphNodeTypeMemAlloc:
      plan->alloc = {As(from->alloc.poolProps), As(from->alloc.accessDescs), from->alloc.accessDescCount, from->alloc.bytesize, 0};
      return cudaSuccess;
    case cudaGraphNodeTypeMemFree:
      plan->free.dptr = Address(from->free.dptr);
      return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      plan->conditional.handle = from->conditional.handle;
      plan->conditional.type = std::bit_cast<CUgraphConditionalNodeType>(from->conditional.type);
      plan->conditional.size = from->conditional.size;
      plan->conditional.ctx = context;
      return cudaSuccess;
    case cudaGraphNodeTypeEmpty:
    case cudaGraphNodeTypeCount:
      break;
  }
  return cudaSuccess;
}

void TakeResults(const CUgraphNodeParams& plan, cudaGraphNodeParams* to) noexcept {
  if (to->type == cudaGraphNodeTypeMemAlloc) to->alloc.dptr = Pointer(plan.alloc.dptr);
  if (to->type == cudaGraphNodeTypeConditional) to->conditional.phGraph_out = plan.conditional.phGraph_out;
}

}  // namespace cuaudit::cudart
