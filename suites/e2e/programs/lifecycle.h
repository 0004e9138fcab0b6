// SPDX-License-Identifier: MIT
// lifecycle.h: one small lifecycle over a table of entry points, shared by clients that differ only in how they find the driver.
//
// It retains the primary context, copies a number to the device and back, and releases everything. Every failure unwinds by the same
// path. A run without faults makes kLifecycleCalls calls, prints "answer 42" and leaves nothing.
#ifndef CUAUDIT_E2E_LIFECYCLE_H
#define CUAUDIT_E2E_LIFECYCLE_H

#include <cuda.h>
#include <stdio.h>

#define LIFECYCLE_CONTEXT_CALLS(X) \
  X(cuInit) X(cuDeviceGet) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxPushCurrent) X(cuCtxPopCurrent)
#define LIFECYCLE_WORK_CALLS(X) X(cuStreamCreate) X(cuStreamDestroy) X(cuMemAlloc) X(cuMemFree) X(cuMemcpyHtoD) X(cuMemcpyDtoH)
#define LIFECYCLE_CALLS(X) LIFECYCLE_CONTEXT_CALLS(X) LIFECYCLE_WORK_CALLS(X)

// cuda.h renames cuMemAlloc to cuMemAlloc_v2; SYMBOL is the name that a library exports.
#define SYMBOL_OF(name) #name
#define SYMBOL(name) SYMBOL_OF(name)
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)

typedef struct Api {
#define MEMBER(name) __typeof__(&name) JOINED(p_, name);
  LIFECYCLE_CALLS(MEMBER)
#undef MEMBER
} Api;

#define CALL(api, name) (api)->JOINED(p_, name)

static int lifecycle(const Api *api) {
  CUdevice device = 0;
  CUcontext context = NULL;
  CUstream stream = NULL;
  CUdeviceptr memory = 0;
  int given = 42, back = 0, pushed = 0;
  CUresult result = CALL(api, cuInit)(0);
  if (result == CUDA_SUCCESS) result = CALL(api, cuDeviceGet)(&device, 0);
  if (result == CUDA_SUCCESS) result = CALL(api, cuDevicePrimaryCtxRetain)(&context, device);
  if (result != CUDA_SUCCESS) context = NULL;
  if (result == CUDA_SUCCESS) result = CALL(api, cuCtxPushCurrent)(context);
  if (result == CUDA_SUCCESS) pushed = 1;
  if (result == CUDA_SUCCESS && (result = CALL(api, cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING)) != CUDA_SUCCESS) stream = NULL;
  if (result == CUDA_SUCCESS && (result = CALL(api, cuMemAlloc)(&memory, 4096)) != CUDA_SUCCESS) memory = 0;
  if (result == CUDA_SUCCESS) result = CALL(api, cuMemcpyHtoD)(memory, &given, sizeof(given));
  if (result == CUDA_SUCCESS) result = CALL(api, cuMemcpyDtoH)(&back, memory, sizeof(back));
  if (memory != 0) CALL(api, cuMemFree)(memory);
  if (stream != NULL) CALL(api, cuStreamDestroy)(stream);
  if (pushed) CALL(api, cuCtxPopCurrent)(&context);
  if (context != NULL) CALL(api, cuDevicePrimaryCtxRelease)(device);
  if (result == CUDA_SUCCESS) printf("answer %d\n", back);
  if (result != CUDA_SUCCESS) printf("driver error %d\n", (int)result);
  fflush(stdout);
  return result == CUDA_SUCCESS ? 0 : 1;
}

#endif
