// SPDX-License-Identifier: MIT
// twins.h: pairs of runtime and driver types that have the same layout under two names. As(x) converts a pointer, value or enumeration of
// the runtime to the driver's type.
//
//   Errors    a pair that differs in size or alignment does not compile.
//   Source    driver_types.h and cuda.h of 13.0, compared field by field. node_plan.h and descriptions.h convert the types that differ.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <type_traits>

#include "faults/driver/driver_ref.h"

namespace cuaudit::cudart {

template <typename Runtime>
struct TwinOf;

#define CUDART_TWIN(runtime, driver)                                                       \
  static_assert(sizeof(runtime) == sizeof(driver) && alignof(runtime) == alignof(driver)); \
  template <>                                                                              \
  struct TwinOf<runtime> {                                                                 \
    using Type = driver;                                                                   \
  };

CUDART_TWIN(cudaGraphEdgeData, CUgraphEdgeData)
CUDART_TWIN(cudaGraphNodeType, CUgraphNodeType)
CUDART_TWIN(cudaGraphInstantiateParams, CUDA_GRAPH_INSTANTIATE_PARAMS)
CUDART_TWIN(cudaGraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo)
CUDART_TWIN(cudaGraphMemAttributeType, CUgraphMem_attribute)
CUDART_TWIN(cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS)
CUDART_TWIN(cudaHostNodeParams, CUDA_HOST_NODE_PARAMS)
CUDART_TWIN(cudaMemAllocNodeParams, CUDA_MEM_ALLOC_NODE_PARAMS)
CUDART_TWIN(cudaExternalSemaphoreSignalNodeParams, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS)
CUDART_TWIN(cudaExternalSemaphoreWaitNodeParams, CUDA_EXT_SEM_WAIT_NODE_PARAMS)
CUDART_TWIN(cudaExternalSemaphoreSignalParams, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)
CUDART_TWIN(cudaExternalSemaphoreWaitParams, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS)
CUDART_TWIN(cudaExternalSemaphoreHandleDesc, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC)
CUDART_TWIN(cudaExternalMemoryHandleDesc, CUDA_EXTERNAL_MEMORY_HANDLE_DESC)
CUDART_TWIN(cudaExternalMemoryBufferDesc, CUDA_EXTERNAL_MEMORY_BUFFER_DESC)
CUDART_TWIN(cudaStreamCaptureMode, CUstreamCaptureMode)
CUDART_TWIN(cudaStreamCaptureStatus, CUstreamCaptureStatus)
CUDART_TWIN(cudaLaunchAttributeID, CUlaunchAttributeID)
CUDART_TWIN(cudaLaunchAttributeValue, CUlaunchAttributeValue)
CUDART_TWIN(cudaMemPoolProps, CUmemPoolProps)
CUDART_TWIN(cudaMemPoolAttr, CUmemPool_attribute)
CUDART_TWIN(cudaMemPoolPtrExportData, CUmemPoolPtrExportData)
CUDART_TWIN(cudaMemAccessDesc, CUmemAccessDesc)
CUDART_TWIN(cudaMemAccessFlags, CUmemAccess_flags)
CUDART_TWIN(cudaMemLocation, CUmemLocation)
CUDART_TWIN(cudaMemAllocationHandleType, CUmemAllocationHandleType)
CUDART_TWIN(cudaMemAllocationType, CUmemAllocationType)
CUDART_TWIN(cudaMemcpyAttributes, CUmemcpyAttributes)
CUDART_TWIN(cudaMemcpy3DBatchOp, CUDA_MEMCPY3D_BATCH_OP)
CUDART_TWIN(cudaMemoryAdvise, CUmem_advise)
CUDART_TWIN(cudaMemRangeAttribute, CUmem_range_attribute)
CUDART_TWIN(cudaDeviceAttr, CUdevice_attribute)
CUDART_TWIN(cudaDeviceP2PAttr, CUdevice_P2PAttribute)
CUDART_TWIN(cudaAtomicOperation, CUatomicOperation)
CUDART_TWIN(cudaFlushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesTarget)
CUDART_TWIN(cudaFlushGPUDirectRDMAWritesScope, CUflushGPUDirectRDMAWritesScope)
CUDART_TWIN(cudaFuncAttribute, CUfunction_attribute)
CUDART_TWIN(cudaFuncCache, CUfunc_cache)
CUDART_TWIN(cudaJitOption, CUjit_option)
CUDART_TWIN(cudaLibraryOption, CUlibraryOption)
CUDART_TWIN(cudaIpcMemHandle_t, CUipcMemHandle)
CUDART_TWIN(cudaIpcEventHandle_t, CUipcEventHandle)
CUDART_TWIN(cudaArraySparseProperties, CUDA_ARRAY_SPARSE_PROPERTIES)
CUDART_TWIN(cudaArrayMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS)
CUDART_TWIN(cudaResourceViewDesc, CUDA_RESOURCE_VIEW_DESC)
CUDART_TWIN(cudaExternalMemory_t, CUexternalMemory)
CUDART_TWIN(cudaExternalSemaphore_t, CUexternalSemaphore)
CUDART_TWIN(cudaGraphicsResource_t, CUgraphicsResource)
#undef CUDART_TWIN

// These handles point to incomplete types.
template <>
struct TwinOf<std::remove_pointer_t<cudaExternalMemory_t>> {
  using Type = std::remove_pointer_t<CUexternalMemory>;
};
template <>
struct TwinOf<std::remove_pointer_t<cudaGraphicsResource_t>> {
  using Type = std::remove_pointer_t<CUgraphicsResource>;
};
template <>
struct TwinOf<std::remove_pointer_t<cudaExternalSemaphore_t>> {
  using Type = std::remove_pointer_t<CUexternalSemaphore>;
};

template <typename Runtime>
requires(!std::is_pointer_v<Runtime>) typename TwinOf<Runtime>::Type As(const Runtime& value) noexcept {
  return std::bit_cast<typename TwinOf<Runtime>::Type>(value);
}

template <typename Runtime>
auto* As(Runtime* pointer) noexcept {
  using Driver = typename TwinOf<std::remove_const_t<Runtime>>::Type;
  return reinterpret_cast<std::conditional_t<std::is_const_v<Runtime>, const Driver, Driver>*>(pointer);
}

}  // namespace cuaudit::cudart
