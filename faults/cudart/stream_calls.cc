// SPDX-License-Identifier: MIT
// Streams and events: creation, waiting, callbacks, attributes, capture.
#include "faults/cudart/calls.h"
#include "faults/cudart/descriptions.h"
#include "faults/cudart/process.h"

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

cudaError_t EventCreate(DriverRef driver, cudaEvent_t* event) noexcept { return From(driver.EventCreate(event, CU_EVENT_DEFAULT)); }

cudaError_t EventCreateWithFlags(DriverRef driver, cudaEvent_t* event, unsigned int flags) noexcept {
  return From(driver.EventCreate(event, flags));
}

cudaError_t EventDestroy(DriverRef driver, cudaEvent_t event) noexcept { return From(driver.EventDestroy(event)); }

cudaError_t EventElapsedTime(DriverRef driver, float* ms, cudaEvent_t start, cudaEvent_t end) noexcept {
  return ms == nullptr ? cudaErrorInvalidValue : From(driver.EventElapsedTime(ms, start, end));
}

cudaError_t EventQuery(DriverRef driver, cudaEvent_t event) noexcept { return From(driver.EventQuery(event)); }

cudaError_t EventRecord(DriverRef driver, cudaEvent_t event, cudaStream_t stream) noexcept {
  return From(driver.EventRecord(event, stream));
}

cudaError_t EventRecordWithFlags(DriverRef driver, cudaEvent_t event, cudaStream_t stream, unsigned int flags) noexcept {
  return From(driver.EventRecordWithFlags(event, stream, flags));
}

cudaError_t EventSynchronize(DriverRef driver, cudaEvent_t event) noexcept { return From(driver.EventSynchronize(event)); }

cudaError_t StreamBeginCapture(DriverRef driver, cudaStream_t stream, enum cudaStreamCaptureMode mode) noexcept {
  return From(driver.StreamBeginCapture(stream, As(mode)));
}

cudaError_t StreamBeginCaptureToGraph(DriverRef driver, cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                      const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                                      enum cudaStreamCaptureMode mode) noexcept {
  return From(driver.StreamBeginCaptureToGraph(stream, graph, dependencies, As(dependencyData), numDependencies, As(mode)));
}

cudaError_t StreamEndCapture(DriverRef driver, cudaStream_t stream, cudaGraph_t* pGraph) noexcept {
  return From(driver.StreamEndCapture(stream, pGraph));
}

cudaError_t StreamIsCapturing(DriverRef driver, cudaStream_t stream, enum cudaStreamCaptureStatus* pCaptureStatus) noexcept {
  return From(driver.StreamIsCapturing(stream, As(pCaptureStatus)));
}

cudaError_t StreamGetCaptureInfo(DriverRef driver, cudaStream_t stream, enum cudaStreamCaptureStatus* captureStatus_out,
                                 unsigned long long* id_out, cudaGraph_t* graph_out, const cudaGraphNode_t** dependencies_out,
                                 const cudaGraphEdgeData** edgeData_out, size_t* numDependencies_out) noexcept {
  static_assert(sizeof(cuuint64_t) == sizeof(unsigned long long));
  return From(driver.StreamGetCaptureInfo(stream, As(captureStatus_out), reinterpret_cast<cuuint64_t*>(id_out), graph_out, dependencies_out,
                                          reinterpret_cast<const CUgraphEdgeData**>(edgeData_out), numDependencies_out));
}

cudaError_t StreamUpdateCaptureDependencies(DriverRef driver, cudaStream_t stream, cudaGraphNode_t* dependencies,
                                            const cudaGraphEdgeData* dependencyData, size_t numDependencies, unsigned int flags) noexcept {
  return From(driver.StreamUpdateCaptureDependencies(stream, dependencies, As(dependencyData), numDependencies, flags));
}

cudaError_t ThreadExchangeStreamCaptureMode(DriverRef driver, enum cudaStreamCaptureMode* mode) noexcept {
  return From(driver.ThreadExchangeStreamCaptureMode(As(mode)));
}

cudaError_t StreamCopyAttributes(DriverRef driver, cudaStream_t dst, cudaStream_t src) noexcept {
  return From(driver.StreamCopyAttributes(dst, src));
}

cudaError_t StreamGetAttribute(DriverRef driver, cudaStream_t hStream, cudaLaunchAttributeID attr,
                               cudaLaunchAttributeValue* value_out) noexcept {
  return From(driver.StreamGetAttribute(hStream, As(attr), As(value_out)));
}

cudaError_t StreamSetAttribute(DriverRef driver, cudaStream_t hStream, cudaLaunchAttributeID attr,
                               const cudaLaunchAttributeValue* value) noexcept {
  return From(driver.StreamSetAttribute(hStream, As(attr), As(value)));
}

}  // namespace cuaudit::cudart
