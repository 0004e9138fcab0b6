// SPDX-License-Identifier: MIT
// exports_12.cc: every function of libcudart.so.12 (12.4) but those that nvcc's generated code calls. Those whose ABI is 13.0's go to
// the same implementation; differences_12.def has the others.
#pragma GCC visibility push(default)
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include <string.h>

#define CUDART_BY_LABEL
#include "faults/cudart/exports.h"

namespace cuaudit::cudart {

// cudaDeviceProp with the layout of CUDA 12.x.
//
//   Errors    cudaErrorInvalidValue for null, cudaErrorInvalidDevice; else the driver's error.
//   Source    CUDA Runtime API 12.4. CUDA 13.0 removed fields, which moved those behind them.

struct DeviceProperties12 {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned int luidDeviceNodeMask;
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate;
  size_t totalConstMem;
  int major;
  int minor;
  size_t textureAlignment;
  size_t texturePitchAlignment;
  int deviceOverlap;
  int multiProcessorCount;
  int kernelExecTimeoutEnabled;
  int integrated;
  int canMapHostMemory;
  int computeMode;
  int maxTexture1D;
  int maxTexture1DMipmap;
  int maxTexture1DLinear;
  int maxTexture2D[2];
  int maxTexture2DMipmap[2];
  int maxTexture2DLinear[3];
  int maxTexture2DGather[2];
  int maxTexture3D[3];
  int maxTexture3DAlt[3];
  int maxTextureCubemap;
  int maxTexture1DLayered[2];
  int maxTexture2DLayered[3];
  int maxTextureCubemapLayered[2];
  int maxSurface1D;
  int maxSurface2D[2];
  int maxSurface3D[3];
  int maxSurface1DLayered[2];
  int maxSurface2DLayered[3];
  int maxSurfaceCubemap;
  int maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int tccDriver;
  int asyncEngineCount;
  int unifiedAddressing;
  int memoryClockRate;
  int memoryBusWidth;
  int l2CacheSize;
  int persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported;
  int globalL1CacheSupported;
  int localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard;
  int multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio;
  int pageableMemoryAccess;
  int concurrentManagedAccess;
  int computePreemptionSupported;
  int canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
  int cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables;
  int directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported;
  int sparseCudaArraySupported;
  int hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported;
  int memoryPoolsSupported;
  int gpuDirectRDMASupported;
  unsigned int gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned int memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported;
  int ipcEventSupported;
  int clusterLaunch;
  int unifiedFunctionPointers;
  int reserved[63];
};
static_assert(sizeof(DeviceProperties12) == 1032);
static_assert(__builtin_offsetof(DeviceProperties12, clockRate) == 348 && __builtin_offsetof(DeviceProperties12, computeMode) == 404 &&
              __builtin_offsetof(DeviceProperties12, surfaceAlignment) == 568 &&
              __builtin_offsetof(DeviceProperties12, sharedMemPerMultiprocessor) == 640 &&
              __builtin_offsetof(DeviceProperties12, sharedMemPerBlockOptin) == 696 &&
              __builtin_offsetof(DeviceProperties12, reservedSharedMemPerBlock) == 720 &&
              __builtin_offsetof(DeviceProperties12, unifiedFunctionPointers) == 776);

namespace {

#define CUDART_PROPERTY(field, attribute)                                                                                            \
  {static_cast<unsigned short>(__builtin_offsetof(DeviceProperties12, field)), sizeof(DeviceProperties12{}.field) == sizeof(size_t), \
   CU_DEVICE_ATTRIBUTE_##attribute},
#define CUDART_PROPERTY_13(field, attribute)
constexpr Property kProperties12[] = {
#include "faults/cudart/device_properties.def"
    CUDART_PROPERTY(clockRate, CLOCK_RATE) CUDART_PROPERTY(deviceOverlap, GPU_OVERLAP)
        CUDART_PROPERTY(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT) CUDART_PROPERTY(computeMode, COMPUTE_MODE)
            CUDART_PROPERTY(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH) CUDART_PROPERTY(memoryClockRate, MEMORY_CLOCK_RATE)
                CUDART_PROPERTY(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)
                    CUDART_PROPERTY(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH)};
#undef CUDART_PROPERTY
#undef CUDART_PROPERTY_13
static_assert(__builtin_offsetof(DeviceProperties12, uuid) == __builtin_offsetof(cudaDeviceProp, uuid) &&
              __builtin_offsetof(DeviceProperties12, totalGlobalMem) == __builtin_offsetof(cudaDeviceProp, totalGlobalMem));

cudaError_t GetDeviceProperties12(DriverRef driver, void* properties, int device) noexcept {
  if (properties == nullptr) return cudaErrorInvalidValue;
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  memset(properties, 0, sizeof(DeviceProperties12));
  return ReadProperties(driver, DeviceAt(device), kProperties12, properties);
}

// The fields that cudaChooseDevice compares.
cudaDeviceProp Wanted12(const void* properties) noexcept {
  const DeviceProperties12& from = *static_cast<const DeviceProperties12*>(properties);
  cudaDeviceProp wanted{};
  memcpy(wanted.name, from.name, sizeof(wanted.name));
  wanted.major = from.major;
  wanted.minor = from.minor;
  wanted.totalGlobalMem = from.totalGlobalMem;
  wanted.multiProcessorCount = from.multiProcessorCount;
  return wanted;
}

}  // namespace
}  // namespace cuaudit::cudart

namespace cuaudit::cudart {
namespace {

// cudaPointerAttributes before 13.0 had no reserved words at its end.
struct PointerAttributes12 {
  enum cudaMemoryType type;
  int device;
  void* device_pointer;
  void* host_pointer;
};
static_assert(sizeof(PointerAttributes12) == 24);

}  // namespace

const int kRuntimeVersion = 12040;

}  // namespace cuaudit::cudart

#include "cudart_exports_12.inc"

CUDART_DEFINE(cudaError_t, cudaPointerGetAttributes, (void* out, const void* pointer)) {
  using namespace cuaudit::cudart;
  return Run<Need::context, false>([&](DriverRef driver) noexcept {
    if (out == nullptr) return cudaErrorInvalidValue;
    cudaPointerAttributes attributes;
    const cudaError_t error = PointerGetAttributes(driver, &attributes, pointer);
    if (error != cudaSuccess) return error;
    *static_cast<PointerAttributes12*>(out) = {attributes.type, attributes.device, attributes.devicePointer, attributes.hostPointer};
    return cudaSuccess;
  });
}

// Functions whose structures are shorter, or whose parameters fewer, than those of 13.0.
namespace cuaudit::cudart {
namespace {

// Structures that 13.0 only extended. The added part is zero.
template <typename Newer, size_t bytes>
Newer Longer(const void* older) noexcept {
  static_assert(bytes < sizeof(Newer));
  Newer newer;
  memset(&newer, 0, sizeof(newer));
  memcpy(&newer, older, bytes);
  return newer;
}

constexpr size_t kResource = 64;
constexpr size_t kResourceView = 48;
constexpr size_t kMemoryHandle = 40;
constexpr size_t kBuffer = 24;
constexpr size_t kMipmap = 64;
constexpr size_t kSemaphoreHandle = 32;

// A device number, or cudaCpuDeviceId.
cudaMemLocation Place(int device) noexcept {
  if (device == cudaCpuDeviceId) return {cudaMemLocationTypeHost, 0};
  return {cudaMemLocationTypeDevice, device};
}

}  // namespace
}  // namespace cuaudit::cudart

#define CUDART_OWN(symbol, need, per_thread, parameters, ...)                                      \
  CUDART_DEFINE(cudaError_t, symbol, parameters) {                                                 \
    using namespace cuaudit::cudart;                                                               \
    return Run<Need::need, per_thread>([&](DriverRef driver) noexcept -> cudaError_t __VA_ARGS__); \
  }

CUDART_OWN(cudaGetDeviceProperties_v2, driver, false, (void* prop, int device), { return GetDeviceProperties12(driver, prop, device); })
CUDART_OWN(cudaChooseDevice, driver, false, (int* device, const void* prop), {
  if (prop == nullptr) return cudaErrorInvalidValue;
  const cudaDeviceProp wanted = Wanted12(prop);
  return ChooseDevice(driver, device, &wanted);
})

// textures and surfaces

CUDART_OWN(cudaCreateTextureObject, context, false,
           (cudaTextureObject_t * object, const void* resource, const cudaTextureDesc* texture, const void* view), {
             if (resource == nullptr) return cudaErrorInvalidValue;
             const auto from = Longer<cudaResourceDesc, kResource>(resource);
             if (view == nullptr) return CreateTextureObject(driver, object, &from, texture, nullptr);
             const auto seen = Longer<cudaResourceViewDesc, kResourceView>(view);
             return CreateTextureObject(driver, object, &from, texture, &seen);
           })
CUDART_OWN(cudaCreateSurfaceObject, context, false, (cudaSurfaceObject_t * object, const void* resource), {
  if (resource == nullptr) return cudaErrorInvalidValue;
  const auto from = Longer<cudaResourceDesc, kResource>(resource);
  return CreateSurfaceObject(driver, object, &from);
})
CUDART_OWN(cudaGetTextureObjectResourceDesc, context, false, (void* resource, cudaTextureObject_t object), {
  cudaResourceDesc found;
  const cudaError_t error = GetTextureObjectResourceDesc(driver, resource == nullptr ? nullptr : &found, object);
  if (error == cudaSuccess) memcpy(resource, &found, kResource);
  return error;
})
CUDART_OWN(cudaGetSurfaceObjectResourceDesc, context, false, (void* resource, cudaSurfaceObject_t object), {
  cudaResourceDesc found;
  const cudaError_t error = GetSurfaceObjectResourceDesc(driver, resource == nullptr ? nullptr : &found, object);
  if (error == cudaSuccess) memcpy(resource, &found, kResource);
  return error;
})
CUDART_OWN(cudaGetTextureObjectResourceViewDesc, context, false, (void* view, cudaTextureObject_t object), {
  cudaResourceViewDesc found;
  const cudaError_t error = GetTextureObjectResourceViewDesc(driver, view == nullptr ? nullptr : &found, object);
  if (error == cudaSuccess) memcpy(view, &found, kResourceView);
  return error;
})

// external memory and semaphores

CUDART_OWN(cudaImportExternalMemory, context, false, (cudaExternalMemory_t * memory, const void* description), {
  if (description == nullptr) return cudaErrorInvalidValue;
  const auto from = Longer<cudaExternalMemoryHandleDesc, kMemoryHandle>(description);
  return ImportExternalMemory(driver, memory, &from);
})
CUDART_OWN(cudaExternalMemoryGetMappedBuffer, context, false, (void** pointer, cudaExternalMemory_t memory, const void* description), {
  if (description == nullptr) return cudaErrorInvalidValue;
  const auto from = Longer<cudaExternalMemoryBufferDesc, kBuffer>(description);
  return ExternalMemoryGetMappedBuffer(driver, pointer, memory, &from);
})
CUDART_OWN(cudaExternalMemoryGetMappedMipmappedArray, context, false,
           (cudaMipmappedArray_t * mipmap, cudaExternalMemory_t memory, const void* description), {
             if (description == nullptr) return cudaErrorInvalidValue;
             const auto from = Longer<cudaExternalMemoryMipmappedArrayDesc, kMipmap>(description);
             return ExternalMemoryGetMappedMipmappedArray(driver, mipmap, memory, &from);
           })
CUDART_OWN(cudaImportExternalSemaphore, context, false, (cudaExternalSemaphore_t * semaphore, const void* description), {
  if (description == nullptr) return cudaErrorInvalidValue;
  const auto from = Longer<cudaExternalSemaphoreHandleDesc, kSemaphoreHandle>(description);
  return ImportExternalSemaphore(driver, semaphore, &from);
})

// graphs without edge data

CUDART_OWN(cudaGraphAddDependencies, context, false,
           (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count),
           { return GraphAddDependencies(driver, graph, from, to, nullptr, count); })
CUDART_OWN(cudaGraphRemoveDependencies, context, false,
           (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count),
           { return GraphRemoveDependencies(driver, graph, from, to, nullptr, count); })
CUDART_OWN(cudaGraphAddNode, context, false,
           (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count, cudaGraphNodeParams* parameters),
           { return GraphAddNode(driver, node, graph, dependencies, nullptr, count, parameters); })
CUDART_OWN(cudaGraphGetEdges, context, false, (cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count),
           { return GraphGetEdges(driver, graph, from, to, nullptr, count); })
CUDART_OWN(cudaGraphNodeGetDependencies, context, false, (cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count),
           { return GraphNodeGetDependencies(driver, node, dependencies, nullptr, count); })
CUDART_OWN(cudaGraphNodeGetDependentNodes, context, false, (cudaGraphNode_t node, cudaGraphNode_t* dependents, size_t* count),
           { return GraphNodeGetDependentNodes(driver, node, dependents, nullptr, count); })

// functions of a stream, each with its twin for the per-thread default stream

#define CUDART_OWN_TWINS(symbol, parameters, ...)             \
  CUDART_OWN(symbol, context, false, parameters, __VA_ARGS__) \
  CUDART_OWN(symbol##_ptsz, context, true, parameters, __VA_ARGS__)

CUDART_OWN(cudaMemAdvise, context, false, (const void* pointer, size_t count, cudaMemoryAdvise advice, int device),
           { return MemAdvise(driver, pointer, count, advice, Place(device)); })
CUDART_OWN_TWINS(cudaMemPrefetchAsync, (const void* pointer, size_t count, int device, cudaStream_t stream),
                 { return MemPrefetchAsync(driver, pointer, count, Place(device), 0, stream); })
CUDART_OWN_TWINS(cudaStreamUpdateCaptureDependencies, (cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count, unsigned flags),
                 { return StreamUpdateCaptureDependencies(driver, stream, dependencies, nullptr, count, flags); })
CUDART_OWN_TWINS(cudaStreamGetCaptureInfo, (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id),
                 { return StreamGetCaptureInfo(driver, stream, status, id, nullptr, nullptr, nullptr, nullptr); })
CUDART_OWN_TWINS(cudaStreamGetCaptureInfo_v2,
                 (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                  const cudaGraphNode_t** dependencies, size_t* count),
                 { return StreamGetCaptureInfo(driver, stream, status, id, graph, dependencies, nullptr, count); })
