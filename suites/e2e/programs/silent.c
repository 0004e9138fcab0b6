// SPDX-License-Identifier: MIT
// silent.c: programs that do nothing wrong, whatever fails.
// Usage   silent retry|optional|atexit|shared · silent cache N
//   retry     an allocation that fails is tried again after trimming: the fault is absorbed
//   optional  a feature that the driver refuses is done without
//   atexit    everything is given back in an exit handler
//   shared    two users of one stream; the last one destroys it
//   cache     N rounds over a stream that is made once and lives as long as the process
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

typedef struct Shared {
  CUstream stream;
  int users;
} Shared;

static CUcontext context;
static CUstream cached;
static CUdeviceptr held;

static void drop(Shared *shared) {
  if (--shared->users == 0) cuStreamDestroy(shared->stream);
}

static void leave(void) {
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
}

static void at_exit(void) {
  if (held != 0) cuMemFree(held);
  leave();
}

static int rounds(int n) {
  int i;
  for (i = 0; i < n; ++i) {
    CUdeviceptr memory;
    if (cached == NULL && cuStreamCreate(&cached, 0) != CUDA_SUCCESS) return 1;
    if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) return 1;
    cuMemFree(memory);
  }
  return 0;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  int status = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  if (strcmp(mode, "atexit") == 0) {
    atexit(&at_exit);
    if (cuMemAlloc(&held, 64) != CUDA_SUCCESS) held = 0;
    exit(held == 0);
  }
  if (strcmp(mode, "retry") == 0) {
    if (cuMemAlloc(&held, 64) != CUDA_SUCCESS && cuMemAlloc(&held, 64) != CUDA_SUCCESS) held = 0;
    status = held == 0;
    if (held != 0) cuMemFree(held);
  }
  if (strcmp(mode, "optional") == 0 && cuMemAllocManaged(&held, 64, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS) cuMemFree(held);
  if (strcmp(mode, "cache") == 0) status = rounds(argc > 2 ? atoi(argv[2]) : 3);
  if (strcmp(mode, "shared") == 0) {
    Shared shared = {NULL, 2};
    status = cuStreamCreate(&shared.stream, 0) != CUDA_SUCCESS;
    if (status == 0) drop(&shared);
    if (status == 0) drop(&shared);
  }
  leave();
  return status;
}
