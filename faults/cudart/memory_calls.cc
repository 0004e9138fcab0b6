// SPDX-License-Identifier: MIT
// Memory of device and host: allocating it, asking about it, copies in batches; hints and moves of managed memory; pools.

#include "faults/cudart/calls.h"
#include "faults/cudart/descriptions.h"
#include "faults/cudart/exports.h"
#include "faults/cudart/process.h"

namespace cuaudit::cudart {
namespace {

constexpr unsigned kPitchElement = 4;

cudaError_t AllocatePitched(DriverRef driver, void** pointer, size_t* pitch, size_t width, size_t rows) noexcept {
  if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
  if (width == 0 || rows == 0) {
    *pointer = nullptr;
    *pitch = 0;
    return cudaSuccess;
  }
  CUdeviceptr address = 0;
  const CUresult result = driver.MemAllocPitch(&address, pitch, width, rows, kPitchElement);
  if (result == CUDA_SUCCESS) *pointer = Pointer(address);
  return From(result);
}

CUdeviceptr* Addresses(void** pointers) noexcept {
  static_assert(sizeof(CUdeviceptr) == sizeof(void*));
  return reinterpret_cast<CUdeviceptr*>(pointers);
}

unsigned char Byte(int value) noexcept { return static_cast<unsigned char>(value); }

// Slices without a gap between them form one rectangle.
template <typename Fill>
cudaError_t FillSlices(const cudaPitchedPtr& to, const cudaExtent& extent, Fill fill) noexcept {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  if (to.ysize == extent.height || extent.depth == 1) return From(fill(Address(to.ptr), extent.height * extent.depth));
  for (size_t z = 0; z < extent.depth; ++z) {
    if (const CUresult result = fill(Address(to.ptr) + z * to.pitch * to.ysize, extent.height)) return From(result);
  }
  return cudaSuccess;
}

}  // namespace

// A null argument is refused even without a context.
cudaError_t Malloc(DriverRef, void** devPtr, size_t size) noexcept {
  if (devPtr == nullptr) return cudaErrorInvalidValue;
  return Run<Need::context, false>([&](DriverRef driver) noexcept {
    *devPtr = nullptr;
    if (size == 0) return cudaSuccess;
    CUdeviceptr address = 0;
    const CUresult result = driver.MemAlloc(&address, size);
    *devPtr = Pointer(address);
    return From(result);
  });
}

cudaError_t Free(DriverRef driver, void* devPtr) noexcept { return From(driver.MemFree(Address(devPtr))); }

cudaError_t MallocHost(DriverRef driver, void** ptr, size_t size) noexcept { return HostAlloc(driver, ptr, size, cudaHostAllocDefault); }

cudaError_t FreeHost(DriverRef driver, void* ptr) noexcept { return ptr == nullptr ? cudaSuccess : From(driver.MemFreeHost(ptr)); }

cudaError_t HostAlloc(DriverRef driver, void** pHost, size_t size, unsigned int flags) noexcept {
  if (pHost == nullptr) return cudaErrorInvalidValue;
  if (size == 0) {
    *pHost = nullptr;
    return cudaSuccess;
  }
  return From(driver.MemHostAlloc(pHost, size, flags));
}

cudaError_t HostRegister(DriverRef driver, void* ptr, size_t size, unsigned int flags) noexcept {
  return From(driver.MemHostRegister(ptr, size, flags));
}

cudaError_t HostUnregister(DriverRef driver, void* ptr) noexcept { return From(driver.MemHostUnregister(ptr)); }

cudaError_t HostGetDevicePointer(DriverRef driver, void** pDevice, void* pHost, unsigned int flags) noexcept {
  if (pDevice == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  const CUresult result = driver.MemHostGetDevicePointer(&address, pHost, flags);
  if (result == CUDA_SUCCESS) *pDevice = Pointer(address);
  return From(result);
}

// All pinned memory is portable in the runtime, which does not report that flag.
cudaError_t HostGetFlags(DriverRef driver, unsigned int* pFlags, void* pHost) noexcept {
  const CUresult result = driver.MemHostGetFlags(pFlags, pHost);
  if (result == CUDA_SUCCESS) *pFlags &= ~static_cast<unsigned>(cudaHostAllocPortable);
  return From(result);
}

cudaError_t MallocManaged(DriverRef, void** devPtr, size_t size, unsigned int flags) noexcept {
  if (devPtr == nullptr) return cudaErrorInvalidValue;
  return Run<Need::context, false>([&](DriverRef driver) noexcept {
    if (size == 0) {
      *devPtr = nullptr;
      return cudaSuccess;
    }
    CUdeviceptr address = 0;
    const CUresult result = driver.MemAllocManaged(&address, size, flags);
    if (result == CUDA_SUCCESS) *devPtr = Pointer(address);
    return From(result);
  });
}

cudaError_t MallocPitch(DriverRef driver, void** devPtr, size_t* pitch, size_t width, size_t height) noexcept {
  return AllocatePitched(driver, devPtr, pitch, width, height);
}

cudaError_t Malloc3D(DriverRef driver, struct cudaPitchedPtr* pitchedDevPtr, struct cudaExtent extent) noexcept {
  if (pitchedDevPtr == nullptr) return cudaErrorInvalidValue;
  void* pointer = nullptr;
  size_t pitch = 0;
  const cudaError_t error = AllocatePitched(driver, &pointer, &pitch, extent.width, extent.height * extent.depth);
  if (error == cudaSuccess) *pitchedDevPtr = {pointer, pitch, extent.width, extent.height};
  return error;
}

// `driver` may be the one for the per-thread default stream.
cudaError_t MallocAsync(DriverRef driver, void** devPtr, size_t size, cudaStream_t hStream) noexcept {
  if (devPtr == nullptr) return cudaErrorInvalidValue;
  return Run<Need::context, false>([&](DriverRef) noexcept {
    CUdeviceptr address = 0;
    const CUresult result = driver.MemAllocAsync(&address, size, hStream);
    if (result == CUDA_SUCCESS) *devPtr = Pointer(address);
    return From(result);
  });
}

cudaError_t FreeAsync(DriverRef driver, void* devPtr, cudaStream_t hStream) noexcept {
  return From(driver.MemFreeAsync(Address(devPtr), hStream));
}

cudaError_t MemGetInfo(DriverRef driver, size_t* free, size_t* total) noexcept {
  size_t ignored = 0;
  return From(driver.MemGetInfo(free != nullptr ? free : &ignored, total != nullptr ? total : &ignored));
}

cudaError_t PointerGetAttributes(DriverRef driver, struct cudaPointerAttributes* attributes, const void* ptr) noexcept {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  unsigned memory_type = 0;
  int ordinal = cudaInvalidDeviceId;
  CUdeviceptr device_address = 0;
  void* host_pointer = nullptr;
  unsigned managed = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void* answers[] = {&memory_type, &ordinal, &device_address, &host_pointer, &managed};
  const CUresult result = driver.PointerGetAttributes(5, asked, answers, Address(ptr));
  // Without a context every pointer is unregistered host memory.
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_CONTEXT) return From(result);
  cudaPointerAttributes found{};
  found.type = managed != 0 ? cudaMemoryTypeManaged : static_cast<cudaMemoryType>(memory_type);
  found.device = memory_type == 0 ? cudaInvalidDeviceId : ordinal;
  found.devicePointer = Pointer(device_address);
  found.hostPointer = memory_type == 0 ? const_cast<void*>(ptr) : host_pointer;
  *attributes = found;
  return cudaSuccess;
}

cudaError_t MemAdvise(DriverRef driver, const void* devPtr, size_t count, enum cudaMemoryAdvise advice,
                      struct cudaMemLocation location) noexcept {
  return From(driver.MemAdvise(Address(devPtr), count, As(advice), As(location)));
}

cudaError_t MemPrefetchAsync(DriverRef driver, const void* devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
                             cudaStream_t stream) noexcept {
  return From(driver.MemPrefetchAsync(Address(devPtr), count, As(location), flags, stream));
}

cudaError_t MemPrefetchBatchAsync(DriverRef driver, void** dptrs, size_t* sizes, size_t count, struct cudaMemLocation* prefetchLocs,
                                  size_t* prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream) noexcept {
  return From(
      driver.MemPrefetchBatchAsync(Addresses(dptrs), sizes, count, As(prefetchLocs), prefetchLocIdxs, numPrefetchLocs, flags, stream));
}

cudaError_t MemDiscardBatchAsync(DriverRef driver, void** dptrs, size_t* sizes, size_t count, unsigned long long flags,
                                 cudaStream_t stream) noexcept {
  return From(driver.MemDiscardBatchAsync(Addresses(dptrs), sizes, count, flags, stream));
}

cudaError_t MemDiscardAndPrefetchBatchAsync(DriverRef driver, void** dptrs, size_t* sizes, size_t count,
                                            struct cudaMemLocation* prefetchLocs, size_t* prefetchLocIdxs, size_t numPrefetchLocs,
                                            unsigned long long flags, cudaStream_t stream) noexcept {
  return From(driver.MemDiscardAndPrefetchBatchAsync(Addresses(dptrs), sizes, count, As(prefetchLocs), prefetchLocIdxs, numPrefetchLocs,
                                                     flags, stream));
}

cudaError_t MemRangeGetAttribute(DriverRef driver, void* data, size_t dataSize, enum cudaMemRangeAttribute attribute, const void* devPtr,
                                 size_t count) noexcept {
  return From(driver.MemRangeGetAttribute(data, dataSize, As(attribute), Address(devPtr), count));
}

cudaError_t MemRangeGetAttributes(DriverRef driver, void** data, size_t* dataSizes, enum cudaMemRangeAttribute* attributes,
                                  size_t numAttributes, const void* devPtr, size_t count) noexcept {
  return From(driver.MemRangeGetAttributes(data, dataSizes, As(attributes), numAttributes, Address(devPtr), count));
}

cudaError_t MemcpyBatchAsync(DriverRef driver, void* const* dsts, const void* const* srcs, const size_t* sizes, size_t count,
                             struct cudaMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs, cudaStream_t stream) noexcept {
  return From(driver.MemcpyBatchAsync(Addresses(const_cast<void**>(dsts)), Addresses(const_cast<void**>(srcs)), const_cast<size_t*>(sizes),
                                      count, As(attrs), attrsIdxs, numAttrs, stream));
}

cudaError_t Memcpy3DBatchAsync(DriverRef driver, size_t numOps, struct cudaMemcpy3DBatchOp* opList, unsigned long long flags,
                               cudaStream_t stream) noexcept {
  return From(driver.Memcpy3DBatchAsync(numOps, As(opList), flags, stream));
}

cudaError_t Memset(DriverRef driver, void* devPtr, int value, size_t count) noexcept {
  return count == 0 ? cudaSuccess : From(driver.MemsetD8(Address(devPtr), Byte(value), count));
}

cudaError_t MemsetAsync(DriverRef driver, void* devPtr, int value, size_t count, cudaStream_t stream) noexcept {
  return count == 0 ? cudaSuccess : From(driver.MemsetD8Async(Address(devPtr), Byte(value), count, stream));
}

cudaError_t Memset2D(DriverRef driver, void* devPtr, size_t pitch, int value, size_t width, size_t height) noexcept {
  if (width == 0 || height == 0) return cudaSuccess;
  return From(driver.MemsetD2D8(Address(devPtr), pitch, Byte(value), width, height));
}

cudaError_t Memset2DAsync(DriverRef driver, void* devPtr, size_t pitch, int value, size_t width, size_t height,
                          cudaStream_t stream) noexcept {
  if (width == 0 || height == 0) return cudaSuccess;
  return From(driver.MemsetD2D8Async(Address(devPtr), pitch, Byte(value), width, height, stream));
}

cudaError_t Memset3D(DriverRef driver, struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent) noexcept {
  return FillSlices(pitchedDevPtr, extent, [&](CUdeviceptr address, size_t rows) noexcept {
    return driver.MemsetD2D8(address, pitchedDevPtr.pitch, Byte(value), extent.width, rows);
  });
}

cudaError_t Memset3DAsync(DriverRef driver, struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent,
                          cudaStream_t stream) noexcept {
  return FillSlices(pitchedDevPtr, extent, [&](CUdeviceptr address, size_t rows) noexcept {
    return driver.MemsetD2D8Async(address, pitchedDevPtr.pitch, Byte(value), extent.width, rows, stream);
  });
}

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
