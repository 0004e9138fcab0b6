// SPDX-License-Identifier: MIT
// looping.c: a lifecycle in a loop, each cycle marked and reported; what goes wrong in one is over with it, or is not.
// Usage   looping HOW CYCLES      clean · leaks: a stream when the buffer fails · crashes, exits: when the buffer fails
//   poisoned: once the buffer has failed, every later cycle loses an event · widens: a second buffer is made anew in each cycle, a KiB
//   larger
#include <cuaudit/mark.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

static const char *how = "clean";
static int poisoned;

static int is(const char *name) { return strcmp(how, name) == 0; }

static CUdeviceptr wide;
static size_t wide_bytes;

static CUresult widen(void) {
  CUresult result = wide == 0 ? CUDA_SUCCESS : cuMemFree(wide);
  if (result != CUDA_SUCCESS) return result;
  wide = 0;
  return cuMemAlloc(&wide, wide_bytes += 1024);
}

static CUresult cycle(void) {
  CUstream stream;
  CUdeviceptr buffer;
  CUevent event;
  CUresult freed, result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemAlloc(&buffer, 4096);
  if (result != CUDA_SUCCESS) {
    if (is("crashes")) abort();
    if (is("exits")) exit(9);
    if (is("poisoned")) poisoned = 1;
    if (!is("leaks")) cuStreamDestroy(stream);
    return result;
  }
  if (poisoned) (void)cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  freed = cuMemFree(buffer);
  if (freed != CUDA_SUCCESS) result = freed;
  freed = cuStreamDestroy(stream);
  return freed != CUDA_SUCCESS ? freed : result;
}

int main(int argc, char **argv) {
  int cycles = argc > 2 ? atoi(argv[2]) : 4, i;
  CUcontext context;
  if (argc > 1) how = argv[1];
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  for (i = 0; i < cycles; ++i) {
    cuaudit_cycle_begin();
    if (is("widens")) widen();
    cuaudit_report((int)cycle());
    cuaudit_cycle_end();
  }
  if (wide != 0) cuMemFree(wide);
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  return 0;
}
