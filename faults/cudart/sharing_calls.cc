// SPDX-License-Identifier: MIT
// What is shared with other processes and other interfaces: memory, synchronisation, graphics resources, the log.
#include "faults/cudart/calls.h"
#include "faults/cudart/descriptions.h"

namespace cuaudit::cudart {

cudaError_t IpcGetEventHandle(DriverRef driver, cudaIpcEventHandle_t* handle, cudaEvent_t event) noexcept {
  return From(driver.IpcGetEventHandle(As(handle), event));
}

cudaError_t IpcOpenEventHandle(DriverRef driver, cudaEvent_t* event, cudaIpcEventHandle_t handle) noexcept {
  return From(driver.IpcOpenEventHandle(event, As(handle)));
}

cudaError_t IpcGetMemHandle(DriverRef driver, cudaIpcMemHandle_t* handle, void* devPtr) noexcept {
  return From(driver.IpcGetMemHandle(As(handle), Address(devPtr)));
}

cudaError_t IpcOpenMemHandle(DriverRef driver, void** devPtr, cudaIpcMemHandle_t handle, unsigned int flags) noexcept {
  if (devPtr == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  const CUresult result = driver.IpcOpenMemHandle(&address, As(handle), flags);
  if (result == CUDA_SUCCESS) *devPtr = Pointer(address);
  return From(result);
}

cudaError_t IpcCloseMemHandle(DriverRef driver, void* devPtr) noexcept { return From(driver.IpcCloseMemHandle(Address(devPtr))); }

cudaError_t ImportExternalMemory(DriverRef driver, cudaExternalMemory_t* extMem_out,
                                 const struct cudaExternalMemoryHandleDesc* memHandleDesc) noexcept {
  return From(driver.ImportExternalMemory(As(extMem_out), As(memHandleDesc)));
}

cudaError_t DestroyExternalMemory(DriverRef driver, cudaExternalMemory_t extMem) noexcept {
  return From(driver.DestroyExternalMemory(As(extMem)));
}

cudaError_t ExternalMemoryGetMappedBuffer(DriverRef driver, void** devPtr, cudaExternalMemory_t extMem,
                                          const struct cudaExternalMemoryBufferDesc* bufferDesc) noexcept {
  if (devPtr == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  const CUresult result = driver.ExternalMemoryGetMappedBuffer(&address, As(extMem), As(bufferDesc));
  if (result == CUDA_SUCCESS) *devPtr = Pointer(address);
  return From(result);
}

cudaError_t ExternalMemoryGetMappedMipmappedArray(DriverRef driver, cudaMipmappedArray_t* mipmap, cudaExternalMemory_t extMem,
                                                  const struct cudaExternalMemoryMipmappedArrayDesc* mipmapDesc) noexcept {
  if (mipmap == nullptr || mipmapDesc == nullptr) return cudaErrorInvalidValue;
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC plan{};
  plan.offset = mipmapDesc->offset;
  plan.numLevels = mipmapDesc->numLevels;
  if (const cudaError_t error = PlanArray(mipmapDesc->formatDesc, mipmapDesc->extent, mipmapDesc->flags, &plan.arrayDesc)) return error;
  CUmipmappedArray made = nullptr;
  const CUresult result = driver.ExternalMemoryGetMappedMipmappedArray(&made, As(extMem), &plan);
  if (result == CUDA_SUCCESS) *mipmap = reinterpret_cast<cudaMipmappedArray_t>(made);
  return From(result);
}

cudaError_t ImportExternalSemaphore(DriverRef driver, cudaExternalSemaphore_t* extSem_out,
                                    const struct cudaExternalSemaphoreHandleDesc* semHandleDesc) noexcept {
  return From(driver.ImportExternalSemaphore(As(extSem_out), As(semHandleDesc)));
}

cudaError_t DestroyExternalSemaphore(DriverRef driver, cudaExternalSemaphore_t extSem) noexcept {
  return From(driver.DestroyExternalSemaphore(As(extSem)));
}

cudaError_t SignalExternalSemaphoresAsync(DriverRef driver, const cudaExternalSemaphore_t* extSemArray,
                                          const struct cudaExternalSemaphoreSignalParams* paramsArray, unsigned int numExtSems,
                                          cudaStream_t stream) noexcept {
  return From(driver.SignalExternalSemaphoresAsync(As(extSemArray), As(paramsArray), numExtSems, stream));
}

cudaError_t WaitExternalSemaphoresAsync(DriverRef driver, const cudaExternalSemaphore_t* extSemArray,
                                        const struct cudaExternalSemaphoreWaitParams* paramsArray, unsigned int numExtSems,
                                        cudaStream_t stream) noexcept {
  return From(driver.WaitExternalSemaphoresAsync(As(extSemArray), As(paramsArray), numExtSems, stream));
}

// graphics resources, whatever interface registered them

cudaError_t GraphicsUnregisterResource(DriverRef driver, cudaGraphicsResource_t resource) noexcept {
  return From(driver.GraphicsUnregisterResource(As(resource)));
}

cudaError_t GraphicsResourceSetMapFlags(DriverRef driver, cudaGraphicsResource_t resource, unsigned int flags) noexcept {
  return From(driver.GraphicsResourceSetMapFlags(As(resource), flags));
}

cudaError_t GraphicsMapResources(DriverRef driver, int count, cudaGraphicsResource_t* resources, cudaStream_t stream) noexcept {
  if (count <= 0) return cudaErrorInvalidValue;
  return From(driver.GraphicsMapResources(static_cast<unsigned>(count), As(resources), stream));
}

cudaError_t GraphicsUnmapResources(DriverRef driver, int count, cudaGraphicsResource_t* resources, cudaStream_t stream) noexcept {
  if (count <= 0) return cudaErrorInvalidValue;
  return From(driver.GraphicsUnmapResources(static_cast<unsigned>(count), As(resources), stream));
}

cudaError_t GraphicsResourceGetMappedPointer(DriverRef driver, void** devPtr, size_t* size, cudaGraphicsResource_t resource) noexcept {
  if (devPtr == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  const CUresult result = driver.GraphicsResourceGetMappedPointer(&address, size, As(resource));
  if (result == CUDA_SUCCESS) *devPtr = Pointer(address);
  return From(result);
}

cudaError_t GraphicsSubResourceGetMappedArray(DriverRef driver, cudaArray_t* array, cudaGraphicsResource_t resource,
                                              unsigned int arrayIndex, unsigned int mipLevel) noexcept {
  if (array == nullptr) return cudaErrorInvalidValue;
  CUarray found = nullptr;
  const CUresult result = driver.GraphicsSubResourceGetMappedArray(&found, As(resource), arrayIndex, mipLevel);
  if (result == CUDA_SUCCESS) *array = reinterpret_cast<cudaArray_t>(found);
  return From(result);
}

cudaError_t GraphicsResourceGetMappedMipmappedArray(DriverRef driver, cudaMipmappedArray_t* mipmappedArray,
                                                    cudaGraphicsResource_t resource) noexcept {
  if (mipmappedArray == nullptr) return cudaErrorInvalidValue;
  CUmipmappedArray found = nullptr;
  const CUresult result = driver.GraphicsResourceGetMappedMipmappedArray(&found, As(resource));
  if (result == CUDA_SUCCESS) *mipmappedArray = reinterpret_cast<cudaMipmappedArray_t>(found);
  return From(result);
}

cudaError_t LogsRegisterCallback(DriverRef driver, cudaLogsCallback_t callbackFunc, void* userData,
                                 cudaLogsCallbackHandle* callback_out) noexcept {
  return From(driver.LogsRegisterCallback(reinterpret_cast<CUlogsCallback>(reinterpret_cast<void*>(callbackFunc)), userData,
                                          reinterpret_cast<CUlogsCallbackHandle*>(callback_out)));
}

cudaError_t LogsUnregisterCallback(DriverRef driver, cudaLogsCallbackHandle callback) noexcept {
  return From(driver.LogsUnregisterCallback(reinterpret_cast<CUlogsCallbackHandle>(callback)));
}

cudaError_t LogsCurrent(DriverRef driver, cudaLogIterator* iterator_out, unsigned int flags) noexcept {
  return From(driver.LogsCurrent(iterator_out, flags));
}

cudaError_t LogsDumpToFile(DriverRef driver, cudaLogIterator* iterator, const char* pathToFile, unsigned int flags) noexcept {
  return From(driver.LogsDumpToFile(iterator, pathToFile, flags));
}

cudaError_t LogsDumpToMemory(DriverRef driver, cudaLogIterator* iterator, char* buffer, size_t* size, unsigned int flags) noexcept {
  return From(driver.LogsDumpToMemory(iterator, buffer, size, flags));
}

}  // namespace cuaudit::cudart
