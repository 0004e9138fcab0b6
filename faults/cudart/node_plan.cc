// SPDX-License-Identifier: MIT
#include "faults/cudart/node_plan.h"

namespace cuaudit::cudart {
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
