// SPDX-License-Identifier: MIT
// defective.c: loses a stream and an event, but only when the buffer that comes after them cannot be had.
#include <cuda.h>
#include <stdio.h>

typedef struct Work {
  CUstream stream;
  CUevent event;
  CUdeviceptr buffer;
} Work;

static int make_both(Work *work) {
  if (cuStreamCreate(&work->stream, 0) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&work->event, 0) == CUDA_SUCCESS) return 0;
  cuStreamDestroy(work->stream);
  return 1;
}

static int make_buffer(Work *work) { return cuMemAlloc(&work->buffer, 4096) != CUDA_SUCCESS; }

int main(void) {
  CUcontext context;
  Work work;
  int status;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  status = make_both(&work);
  if (status == 0) {
    status = make_buffer(&work);
    if (status == 0) {
      cuMemFree(work.buffer);
      cuEventDestroy(work.event);
      cuStreamDestroy(work.stream);
    }
  }
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  fprintf(stderr, "defective: status %d\n", status);
  return status;
}
