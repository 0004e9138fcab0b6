// SPDX-License-Identifier: MIT
// other_driver.c: a libcuda.so.1 that is not cuaudit's: enough of one to run `marked` and the hostile programs that a machine may
// refuse, where no tool is in the process.
#include <cuda.h>

static int object;

CUresult CUDAAPI cuInit(unsigned int flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = (CUcontext)(void *)&object;
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) { return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }
CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) { return context != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
CUresult CUDAAPI cuCtxPopCurrent(CUcontext *context) {
  if (context != NULL) *context = (CUcontext)(void *)&object;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
  *context = (CUcontext)(void *)&object;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags) {
  *stream = (CUstream)(void *)&object;
  return flags < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuStreamDestroy(CUstream stream) { return stream != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags) {
  *event = (CUevent)(void *)&object;
  return flags < 8 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return event != NULL && stream != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult CUDAAPI cuEventDestroy(CUevent event) { return event != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
