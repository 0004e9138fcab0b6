// SPDX-License-Identifier: MIT
#include "faults/cudart/calls.h"
#include "faults/cudart/devices.h"

namespace cuaudit::cudart {

cudaError_t StreamCreate(DriverRef driver, cudaStream_t* pStream) noexcept { return From(driver.StreamCreate(pStream, CU_STREAM_DEFAULT)); }

cudaError_t StreamCreateWithFlags(DriverRef driver, cudaStream_t* pStream, unsigned int flags) noexcept {
  return From(driver.StreamCreate(pStream, flags));
}

cudaError_t StreamCreateWithPriority(DriverRef driver, cudaStream_t* pStream, unsigned int flags, int priority) noexcept {
  return From(driver.StreamCreateWithPriority(pStream, flags, priority));
}

cudaError_t StreamDestroy(DriverRef driver, cudaStream_t stream) noexcept { return From(driver.StreamDestroy(stream)); }

cudaError_t StreamQuery(DriverRef driver, cudaStream_t stream) noexcept { return From(driver.StreamQuery(stream)); }

cudaError_t StreamSynchronize(DriverRef driver, cudaStream_t stream) noexcept { return From(driver.StreamSynchronize(stream)); }

cudaError_t StreamWaitEvent(DriverRef driver, cudaStream_t stream, cudaEvent_t event, unsigned int flags) noexcept {
  return From(driver.StreamWaitEvent(stream, event, flags));
}

// The two callback types differ only in the name of the status enumeration, whose values are equal.
cudaError_t StreamAddCallback(DriverRef driver, cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                              unsigned int flags) noexcept {
  return From(driver.StreamAddCallback(stream, reinterpret_cast<CUstreamCallback>(reinterpret_cast<void*>(callback)), userData, flags));
}

cudaError_t LaunchHostFunc(DriverRef driver, cudaStream_t stream, cudaHostFn_t fn, void* userData) noexcept {
  return From(driver.LaunchHostFunc(stream, fn, userData));
}

cudaError_t StreamGetFlags(DriverRef driver, cudaStream_t hStream, unsigned int* flags) noexcept {
  return From(driver.StreamGetFlags(hStream, flags));
}

cudaError_t StreamGetPriority(DriverRef driver, cudaStream_t hStream, int* priority) noexcept {
  return From(driver.StreamGetPriority(hStream, priority));
}

cudaError_t StreamGetId(DriverRef driver, cudaStream_t hStream, unsigned long long* streamId) noexcept {
  return From(driver.StreamGetId(hStream, streamId));
}

cudaError_t StreamGetDevice(DriverRef driver, cudaStream_t hStream, int* device) noexcept {
  if (device == nullptr) return cudaErrorInvalidValue;
  CUdevice of_stream = 0;
  const CUresult result = driver.StreamGetDevice(hStream, &of_stream);
  if (result == CUDA_SUCCESS) *device = OrdinalOf(of_stream);
  return From(result);
}

cudaError_t StreamAttachMemAsync(DriverRef driver, cudaStream_t stream, void* devPtr, size_t length, unsigned int flags) noexcept {
  return From(driver.StreamAttachMemAsync(stream, Address(devPtr), length, flags));
}

}  // namespace cuaudit::cudart
