// SPDX-License-Identifier: MIT
// descriptions.h: structures of the runtime and of the driver: those that are the same memory, and those that are converted.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <type_traits>

#include "faults/cudart/calls.h"
#include "faults/cudart/registry.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::cudart {

// Pairs of runtime and driver types that have the same layout under two names. As(x) converts a pointer, value or enumeration of
// the runtime to the driver's type.
//
//   Errors    a pair that differs in size or alignment does not compile.
//   Source    driver_types.h and cuda.h of 13.0, compared field by field. Those that differ are converted below.

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

// Converts descriptions of copies, arrays, textures and surfaces between the runtime's structures and the driver's.
//
//   Units     bytes. In cudaMemcpy3DParms, positions and extents count elements if either side is an array.
//   Errors    cudaErrorInvalidMemcpyDirection for an unknown kind, cudaErrorInvalidPitchValue for rows longer than their pitch.
//   Faults    calls the driver: Array3DGetDescriptor, for the element size.
//   Source    CUDA Runtime API 13.0, Memory Management.

// Size of one element of `array`.
cudaError_t ElementBytes(DriverRef driver, cudaArray_const_t array, size_t* bytes) noexcept;

bool IsKind(enum cudaMemcpyKind kind) noexcept;
bool IntoDevice(enum cudaMemcpyKind kind) noexcept;
bool OutOfDevice(enum cudaMemcpyKind kind) noexcept;
bool IsEmpty(const cudaExtent& extent) noexcept;
CUmemorytype SourceType(enum cudaMemcpyKind kind) noexcept;
CUmemorytype DestinationType(enum cudaMemcpyKind kind) noexcept;

// One side of a pitched copy: a pointer with a pitch, or an array.
struct Side {
  CUmemorytype type;
  const void* pointer;
  size_t pitch;
  CUarray array;
  size_t x_bytes;
  size_t y;
};
Side PointerSide(CUmemorytype type, const void* pointer, size_t pitch) noexcept;
Side ArraySide(cudaArray_const_t array, size_t x_bytes, size_t y) noexcept;

// Check both sides and join them in the driver's structure.
cudaError_t Plan2D(const Side& to, const Side& from, size_t width_bytes, size_t height, CUDA_MEMCPY2D* plan) noexcept;
cudaError_t Plan3D(DriverRef driver, const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* plan) noexcept;

// Converts descriptions of arrays, textures and surfaces between the runtime's structures and the driver's.
//
//   Units     elements for extents, bytes for pitches.
//   Errors    cudaErrorInvalidChannelDescriptor for a format that no array can have.
//   Source    CUDA Runtime API 13.0: texture_types.h, surface_types.h, channel format kinds.

struct Format {
  CUarray_format format;
  unsigned channels;
};

cudaError_t FormatOf(const cudaChannelFormatDesc& description, Format* format) noexcept;
cudaChannelFormatDesc DescriptionOf(const Format& format) noexcept;

cudaError_t PlanArray(const cudaChannelFormatDesc& description, cudaExtent extent, unsigned flags, CUDA_ARRAY3D_DESCRIPTOR* plan) noexcept;
cudaError_t PlanResource(const cudaResourceDesc& from, CUDA_RESOURCE_DESC* plan) noexcept;
cudaResourceDesc ResourceOf(const CUDA_RESOURCE_DESC& from) noexcept;
CUDA_TEXTURE_DESC PlanTexture(const cudaTextureDesc& from) noexcept;
cudaTextureDesc TextureOf(const CUDA_TEXTURE_DESC& from) noexcept;

inline CUmipmappedArray Mipmap(cudaMipmappedArray_const_t mipmap) noexcept {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray*>(mipmap));
}

// Converts parameters of graph nodes between the runtime's structures and the driver's.
//
//   Units     those of the structures. In cudaMemcpy3DParms, x counts elements if either side is an array; the driver always counts bytes.
//   Errors    those of descriptions.h and registry.h; cudaErrorInvalidValue for a null structure.
//   Faults    calls the driver: CtxGetCurrent, Array3DGetDescriptor, and the calls of registry.h.
//   Source    CUDA Runtime API 13.0, Graph Management.

// The current context, which every node of the runtime belongs to.
cudaError_t CurrentContext(DriverRef driver, CUcontext* context) noexcept;

cudaError_t PlanKernel(DriverRef driver, const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* plan) noexcept;
// Returns cudaErrorInvalidDeviceFunction for a kernel that was not registered, because no host address stands for it.
cudaError_t KernelParameters(DriverRef driver, const CUDA_KERNEL_NODE_PARAMS& from, cudaKernelNodeParams* parameters) noexcept;

cudaError_t PlanCopyNode(DriverRef driver, const cudaMemcpy3DParms* from, CUDA_MEMCPY3D* plan) noexcept;
cudaError_t PlanLinearCopy(void* to, const void* from, size_t count, enum cudaMemcpyKind kind, CUDA_MEMCPY3D* plan) noexcept;
cudaError_t CopyParameters(DriverRef driver, const CUDA_MEMCPY3D& from, cudaMemcpy3DParms* parameters) noexcept;

// Converts cudaGraphNodeParams of any type. TakeResults copies back what the driver wrote: an address or child graphs.
cudaError_t PlanNode(DriverRef driver, const cudaGraphNodeParams* from, CUgraphNodeParams* plan) noexcept;
void TakeResults(const CUgraphNodeParams& plan, cudaGraphNodeParams* to) noexcept;

}  // namespace cuaudit::cudart
