// SPDX-License-Identifier: MIT
// oneshot.c: a tool that says "no GPU" and exits when its init fails, with what it had so far; later failures unwind.
// Usage   oneshot [marked|careless|unmarked]
//   marked    its phases are marked · careless  and a failure of its work exits, too · unmarked  no marks
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuaudit/mark.h"

static CUcontext context;
static CUstream stream;
static CUevent event;
static CUdeviceptr memory;
static const char *mode = "marked";

static void phase(int which) {
  if (strcmp(mode, "unmarked") != 0) cuaudit_phase(which);
}

static void need(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  puts("no GPU");
  exit(1);
}

static CUresult work(void) {
  int given = 42, back = 0;
  CUresult result = cuMemAlloc(&memory, 4096);
  if (result != CUDA_SUCCESS) {
    memory = 0;
    return result;
  }
  result = cuMemcpyHtoD(memory, &given, sizeof(given));
  if (result == CUDA_SUCCESS) result = cuMemcpyDtoH(&back, memory, sizeof(back));
  return result != CUDA_SUCCESS || back == given ? result : CUDA_ERROR_UNKNOWN;
}

int main(int argc, char **argv) {
  CUresult result;
  if (argc > 1) mode = argv[1];
  phase(CUAUDIT_INIT);
  need(cuInit(0));
  need(cuDevicePrimaryCtxRetain(&context, 0));
  need(cuCtxSetCurrent(context));
  need(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  need(cuEventCreate(&event, CU_EVENT_DEFAULT));
  phase(CUAUDIT_WORK);
  result = work();
  if (result != CUDA_SUCCESS && strcmp(mode, "careless") == 0) exit(1);
  phase(CUAUDIT_TEARDOWN);
  if (memory != 0) cuMemFree(memory);
  cuEventDestroy(event);
  cuStreamDestroy(stream);
  cuDevicePrimaryCtxRelease(0);
  return result == CUDA_SUCCESS ? 0 : 1;
}
