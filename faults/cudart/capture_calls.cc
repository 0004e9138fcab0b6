// SPDX-License-Identifier: MIT
// Stream capture, and the attributes of streams.
#include "faults/cudart/calls.h"
#include "faults/cudart/twins.h"

namespace cuaudit::cudart {

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
