// SPDX-License-Identifier: MIT
// marked.c: tells where its cycles and phases are; without cuaudit the marks are tests of a null address.
// Usage   marked clean|leaking [cycles]      default 5; leaking: one event a cycle stays
#include <cuaudit/mark.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  int leaking = argc > 1 && strcmp(argv[1], "leaking") == 0;
  int cycles = argc > 2 ? atoi(argv[2]) : 5;
  int i, status = 0;
  CUcontext context;
  CUstream warm;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS || cuStreamCreate(&warm, 0) != CUDA_SUCCESS) return 1;
  for (i = 0; i < cycles; ++i) {
    CUevent event = NULL;
    cuaudit_cycle_begin();
    cuaudit_phase(CUAUDIT_INIT);
    if (cuEventCreate(&event, 0) != CUDA_SUCCESS) {
      event = NULL;
      status = 1;
    }
    cuaudit_phase(CUAUDIT_WORK);
    if (event != NULL && cuEventRecord(event, warm) != CUDA_SUCCESS) status = 1;
    cuaudit_phase(CUAUDIT_TEARDOWN);
    if (event != NULL && !leaking && cuEventDestroy(event) != CUDA_SUCCESS) status = 1;
    cuaudit_cycle_end();
  }
  cuStreamDestroy(warm);
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  printf("marks %s\n", cuaudit_mark ? "seen" : "free");
  return status;
}
