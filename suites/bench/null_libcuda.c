/* SPDX-License-Identifier: MIT
 * A libcuda.so.1 that does nothing: what is measured in front of it is the caller's own cost. Memory is addresses that nobody backs, an
 * event is over as soon as it is asked about, and no stream is ever captured. Only what the allocator calls is here; the rest answers
 * NOT_SUPPORTED through the table of whoever opened it. */
#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>

#define NULL_CALL __attribute__((visibility("default"))) CUresult

static _Atomic(uint64_t) next_address = UINT64_C(0x10000000000);
static _Atomic(uint64_t) next_handle = 0x1000;
static int context;

NULL_CALL cuInit(unsigned flags) {
  (void)flags;
  return CUDA_SUCCESS;
}
NULL_CALL cuDeviceGet(CUdevice* out, int ordinal) {
  *out = ordinal;
  return CUDA_SUCCESS;
}
NULL_CALL cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  (void)device;
  *out = (CUcontext)&context;
  return CUDA_SUCCESS;
}
NULL_CALL cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  (void)device;
  return CUDA_SUCCESS;
}
NULL_CALL cuDeviceGetAttribute(int* out, CUdevice_attribute attribute, CUdevice device) {
  (void)attribute;
  (void)device;
  *out = 0;
  return CUDA_SUCCESS;
}
NULL_CALL cuDeviceTotalMem_v2(size_t* out, CUdevice device) {
  (void)device;
  *out = (size_t)1 << 40;
  return CUDA_SUCCESS;
}
NULL_CALL cuMemGetInfo_v2(size_t* available, size_t* total) {
  *available = *total = (size_t)1 << 40;
  return CUDA_SUCCESS;
}
NULL_CALL cuCtxGetCurrent(CUcontext* out) {
  *out = (CUcontext)&context;
  return CUDA_SUCCESS;
}
NULL_CALL cuCtxSetCurrent(CUcontext current) {
  (void)current;
  return CUDA_SUCCESS;
}
NULL_CALL cuCtxPushCurrent_v2(CUcontext pushed) {
  (void)pushed;
  return CUDA_SUCCESS;
}
NULL_CALL cuCtxPopCurrent_v2(CUcontext* out) {
  *out = (CUcontext)&context;
  return CUDA_SUCCESS;
}
NULL_CALL cuCtxSynchronize(void) { return CUDA_SUCCESS; }
NULL_CALL cuCtxSynchronize_v2(CUcontext synchronized) {
  (void)synchronized;
  return CUDA_SUCCESS;
}
NULL_CALL cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  (void)mode;
  return CUDA_SUCCESS;
}
NULL_CALL cuStreamCreate(CUstream* out, unsigned flags) {
  (void)flags;
  *out = (CUstream)(uintptr_t)atomic_fetch_add(&next_handle, 64); /* NOLINT(performance-no-int-to-ptr) */
  return CUDA_SUCCESS;
}
NULL_CALL cuStreamDestroy_v2(CUstream stream) {
  (void)stream;
  return CUDA_SUCCESS;
}
NULL_CALL cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* out) {
  (void)stream;
  *out = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
NULL_CALL cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                    const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count) {
  (void)stream;
  (void)id;
  (void)graph;
  (void)nodes;
  (void)edges;
  (void)count;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
NULL_CALL cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                    const CUgraphNode** nodes, size_t* count) {
  (void)stream;
  (void)id;
  (void)graph;
  (void)nodes;
  (void)count;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
NULL_CALL cuStreamGetId(CUstream stream, unsigned long long* out) {
  *out = (unsigned long long)(uintptr_t)stream;
  return CUDA_SUCCESS;
}
NULL_CALL cuStreamGetCtx(CUstream stream, CUcontext* out) {
  (void)stream;
  *out = (CUcontext)&context;
  return CUDA_SUCCESS;
}
NULL_CALL cuStreamGetCtx_v2(CUstream stream, CUcontext* out, CUgreenCtx* green) {
  (void)stream;
  (void)green;
  *out = (CUcontext)&context;
  return CUDA_SUCCESS;
}
NULL_CALL cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  (void)stream;
  (void)event;
  (void)flags;
  return CUDA_SUCCESS;
}
NULL_CALL cuEventCreate(CUevent* out, unsigned flags) {
  (void)flags;
  *out = (CUevent)(uintptr_t)atomic_fetch_add(&next_handle, 64); /* NOLINT(performance-no-int-to-ptr) */
  return CUDA_SUCCESS;
}
NULL_CALL cuEventDestroy_v2(CUevent event) {
  (void)event;
  return CUDA_SUCCESS;
}
NULL_CALL cuEventRecord(CUevent event, CUstream stream) {
  (void)event;
  (void)stream;
  return CUDA_SUCCESS;
}
NULL_CALL cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
NULL_CALL cuEventQuery(CUevent event) {
  (void)event;
  return CUDA_SUCCESS;
}
NULL_CALL cuEventSynchronize(CUevent event) {
  (void)event;
  return CUDA_SUCCESS;
}
NULL_CALL cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  const uint64_t whole = (bytes + (((uint64_t)2 << 20) - 1)) & ~(((uint64_t)2 << 20) - 1);
  *out = atomic_fetch_add(&next_address, whole);
  return CUDA_SUCCESS;
}
NULL_CALL cuMemFree_v2(CUdeviceptr address) {
  (void)address;
  return CUDA_SUCCESS;
}
NULL_CALL cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  (void)attribute;
  *(unsigned long long*)out = address;
  return CUDA_SUCCESS;
}
