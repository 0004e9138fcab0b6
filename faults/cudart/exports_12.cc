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
#include "faults/cudart/properties_12.h"

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
