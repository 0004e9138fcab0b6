// SPDX-License-Identifier: MIT
// Memory pools: current and default ones, attributes, access, export.
#include "faults/cudart/calls.h"
#include "faults/cudart/devices.h"
#include "faults/cudart/twins.h"

namespace cuaudit::cudart {
namespace {

bool IsDevice(int device) noexcept { return device >= 0 && device < DeviceCount(); }

}  // namespace

cudaError_t DeviceGetDefaultMemPool(DriverRef driver, cudaMemPool_t* memPool, int device) noexcept {
  return IsDevice(device) ? From(driver.DeviceGetDefaultMemPool(memPool, DeviceAt(device))) : cudaErrorInvalidDevice;
}

cudaError_t DeviceGetMemPool(DriverRef driver, cudaMemPool_t* memPool, int device) noexcept {
  return IsDevice(device) ? From(driver.DeviceGetMemPool(memPool, DeviceAt(device))) : cudaErrorInvalidDevice;
}

cudaError_t DeviceSetMemPool(DriverRef driver, int device, cudaMemPool_t memPool) noexcept {
  return IsDevice(device) ? From(driver.DeviceSetMemPool(DeviceAt(device), memPool)) : cudaErrorInvalidValue;
}

cudaError_t MemGetDefaultMemPool(DriverRef driver, cudaMemPool_t* memPool, struct cudaMemLocation* location,
                                 enum cudaMemAllocationType type) noexcept {
  return From(driver.MemGetDefaultMemPool(memPool, As(location), As(type)));
}

cudaError_t MemGetMemPool(DriverRef driver, cudaMemPool_t* memPool, struct cudaMemLocation* location,
                          enum cudaMemAllocationType type) noexcept {
  return From(driver.MemGetMemPool(memPool, As(location), As(type)));
}

cudaError_t MemSetMemPool(DriverRef driver, struct cudaMemLocation* location, enum cudaMemAllocationType type,
                          cudaMemPool_t memPool) noexcept {
  return From(driver.MemSetMemPool(As(location), As(type), memPool));
}

cudaError_t MemPoolCreate(DriverRef driver, cudaMemPool_t* memPool, const struct cudaMemPoolProps* poolProps) noexcept {
  return From(driver.MemPoolCreate(memPool, As(poolProps)));
}

cudaError_t MemPoolDestroy(DriverRef driver, cudaMemPool_t memPool) noexcept { return From(driver.MemPoolDestroy(memPool)); }

cudaError_t MemPoolTrimTo(DriverRef driver, cudaMemPool_t memPool, size_t minBytesToKeep) noexcept {
  return From(driver.MemPoolTrimTo(memPool, minBytesToKeep));
}

cudaError_t MemPoolSetAttribute(DriverRef driver, cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) noexcept {
  return From(driver.MemPoolSetAttribute(memPool, As(attr), value));
}

cudaError_t MemPoolGetAttribute(DriverRef driver, cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) noexcept {
  return From(driver.MemPoolGetAttribute(memPool, As(attr), value));
}

cudaError_t MemPoolSetAccess(DriverRef driver, cudaMemPool_t memPool, const struct cudaMemAccessDesc* descList, size_t count) noexcept {
  return From(driver.MemPoolSetAccess(memPool, As(descList), count));
}

cudaError_t MemPoolGetAccess(DriverRef driver, enum cudaMemAccessFlags* flags, cudaMemPool_t memPool,
                             struct cudaMemLocation* location) noexcept {
  return From(driver.MemPoolGetAccess(As(flags), memPool, As(location)));
}

cudaError_t MallocFromPoolAsync(DriverRef driver, void** ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream) noexcept {
  if (ptr == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  const CUresult result = driver.MemAllocFromPoolAsync(&address, size, memPool, stream);
  if (result == CUDA_SUCCESS) *ptr = Pointer(address);
  return From(result);
}

cudaError_t MemPoolExportToShareableHandle(DriverRef driver, void* shareableHandle, cudaMemPool_t memPool,
                                           enum cudaMemAllocationHandleType handleType, unsigned int flags) noexcept {
  return From(driver.MemPoolExportToShareableHandle(shareableHandle, memPool, As(handleType), flags));
}

cudaError_t MemPoolImportFromShareableHandle(DriverRef driver, cudaMemPool_t* memPool, void* shareableHandle,
                                             enum cudaMemAllocationHandleType handleType, unsigned int flags) noexcept {
  return From(driver.MemPoolImportFromShareableHandle(memPool, shareableHandle, As(handleType), flags));
}

cudaError_t MemPoolExportPointer(DriverRef driver, struct cudaMemPoolPtrExportData* exportData, void* ptr) noexcept {
  return From(driver.MemPoolExportPointer(As(exportData), Address(ptr)));
}

cudaError_t MemPoolImportPointer(DriverRef driver, void** ptr, cudaMemPool_t memPool,
                                 struct cudaMemPoolPtrExportData* exportData) noexcept {
  if (ptr == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  const CUresult result = driver.MemPoolImportPointer(&address, memPool, As(exportData));
  if (result == CUDA_SUCCESS) *ptr = Pointer(address);
  return From(result);
}

}  // namespace cuaudit::cudart
