// SPDX-License-Identifier: MIT
// leaves.c: a program works in two contexts, its own and the primary one, with the helpers enter() and leave(). On its failing path it pops
// its own context by leave(), too, before it destroys it. In the wrong forms the work pops once too often, and takes the program's context.
// Usage   leaves destroys|tears_down|works_on right
//         leaves failed_push|own_pop|twice wrong|right
#include <cuda.h>
#include <string.h>

static const char *form = "";
static int wrong;
static CUcontext own;
static CUcontext primary;

static int failed(CUresult code) { return code != CUDA_SUCCESS; }
static int is(const char *name) { return strcmp(form, name) == 0; }

static int enter(void) { return failed(cuCtxPushCurrent(primary)); }

static void leave(void) {
  CUcontext left = NULL;
  cuCtxPopCurrent(&left);
}

static int work(void) {
  CUdeviceptr memory = 0;
  int status;
  if (enter()) {
    if (wrong && is("failed_push")) leave();
    if (wrong && is("own_pop")) cuCtxPopCurrent(NULL);
    return 1;
  }
  status = failed(cuMemAlloc(&memory, 4096));
  if (!status) cuMemFree(memory);
  leave();
  if (status && wrong && is("twice")) leave();
  return status;
}

static void tear_down(void) { cuCtxDestroy(own); }

int main(int argc, char **argv) {
  int status;
  form = argc > 1 ? argv[1] : "";
  wrong = argc > 2 && strcmp(argv[2], "wrong") == 0;
  if (failed(cuInit(0)) || failed(cuDevicePrimaryCtxRetain(&primary, 0))) return 1;
  if (failed(cuCtxCreate(&own, NULL, 0, 0))) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  status = work();
  if (status && !wrong) leave();
  if (status && is("works_on") && !enter()) leave();
  if (is("tears_down")) {
    tear_down();
  } else {
    cuCtxDestroy(own);
  }
  cuDevicePrimaryCtxRelease(0);
  return status;
}
