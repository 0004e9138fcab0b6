// SPDX-License-Identifier: MIT
// reports.c: lifecycles that say how they went; a definition chooses the program.
//
// oneshot (ONESHOT): a tool that says "no GPU" and exits when its init fails, with what it had so far; later failures unwind.
// Usage   oneshot [marked|careless|unmarked]
//   marked    its phases are marked · careless  and a failure of its work exits, too · unmarked  no marks
//
// reports: a lifecycle that marks its cycles and says of each how it went; each mode has one thing wrong, or looks as if it had.
// Usage   reports MODE [cycles]      default 3
//   honest     nothing wrong: reports the error that it met, gives everything back, works again in the next cycle
//   retry      an allocation that fails is tried again: success after a fault, and rightly so
//   optional   does without a memory pool where the driver has none; everything else is needed
//   keeps      a stream whose release is refused is kept, and released in the next cycle
//   swallow    a memset that fails is not reported
//   wrong      whatever fails is reported as INVALID_VALUE
//   output     says that its output is written although it failed
//   spurious   reports a failure in cycle 2 although all went well
//   stuck      after one failure no cycle works any more
//   twice      leaks its memory when the synchronization on the way back from a failed memset fails too
#if defined(ONESHOT)
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
#else
#include <cuaudit/mark.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

static const char *mode = "";
static int broken;
static CUstream kept;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static CUresult allocate(CUdeviceptr *memory) {
  CUresult result = cuMemAlloc(memory, 4096);
  if (result != CUDA_SUCCESS && is("retry")) result = cuMemAlloc(memory, 4096);
  if (result != CUDA_SUCCESS) *memory = 0;
  return result;
}

// An optional feature: without it the rest goes on.
static CUmemoryPool make_pool(void) {
  CUmemPoolProps properties;
  CUmemoryPool pool = NULL;
  memset(&properties, 0, sizeof properties);
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS ? pool : NULL;
}

static CUresult work(CUdeviceptr memory, CUstream stream) {
  CUresult result = cuMemsetD8Async(memory, 1, 4096, stream);
  if (result != CUDA_SUCCESS && is("swallow")) result = CUDA_SUCCESS;
  return result;
}

// The way back: the stream may still use the memory.
static CUresult give_back(CUdeviceptr memory, CUstream stream, int failed) {
  CUresult result = CUDA_SUCCESS;
  if (stream != NULL) result = cuStreamSynchronize(stream);
  if (result != CUDA_SUCCESS && failed && is("twice")) memory = 0;
  if (memory != 0) cuMemFree(memory);
  return failed ? CUDA_SUCCESS : result;
}

static CUresult cycle(void) {
  CUdeviceptr memory = 0;
  CUstream stream = NULL;
  CUmemoryPool pool = is("optional") ? make_pool() : NULL;
  CUresult result, back;
  if (kept != NULL && cuStreamDestroy(kept) == CUDA_SUCCESS) kept = NULL;
  result = broken ? CUDA_ERROR_UNKNOWN : cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) stream = NULL;
  if (result == CUDA_SUCCESS) result = allocate(&memory);
  if (result == CUDA_SUCCESS) result = work(memory, stream);
  back = give_back(memory, stream, result != CUDA_SUCCESS);
  if (result == CUDA_SUCCESS) result = back;
  if (stream != NULL && cuStreamDestroy(stream) != CUDA_SUCCESS && is("keeps")) kept = stream;
  if (pool != NULL) cuMemPoolDestroy(pool);
  if (result != CUDA_SUCCESS && is("stuck")) broken = 1;
  return result;
}

int main(int argc, char **argv) {
  const int cycles = argc > 2 ? atoi(argv[2]) : 3;
  int i, failures = 0;
  CUcontext context;
  mode = argc > 1 ? argv[1] : "honest";
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  for (i = 1; i <= cycles; ++i) {
    CUresult result;
    cuaudit_cycle_begin();
    result = cycle();
    cuaudit_output(result == CUDA_SUCCESS || is("output"));
    if (result != CUDA_SUCCESS && is("wrong")) result = CUDA_ERROR_INVALID_VALUE;
    if (i == 2 && is("spurious")) result = CUDA_ERROR_UNKNOWN;
    cuaudit_report((int)result);
    cuaudit_cycle_end();
    if (result != CUDA_SUCCESS && !is("spurious")) ++failures;
  }
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  return failures == 0 ? 0 : 1;
}
#endif
