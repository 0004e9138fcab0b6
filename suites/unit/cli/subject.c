// SPDX-License-Identifier: MIT
// subject.c: one lifecycle over the driver API, sound or wrong in the way that the first argument names. Not linked against libcuda.
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuaudit/mark.h"

static CUresult (*init)(unsigned int);
static CUresult (*device_get)(CUdevice*, int);
static CUresult (*retain)(CUcontext*, CUdevice);
static CUresult (*release)(CUdevice);
static CUresult (*set_current)(CUcontext);
static CUresult (*stream_create)(CUstream*, unsigned int);
static CUresult (*stream_destroy)(CUstream);
static CUresult (*allocate)(CUdeviceptr*, size_t);
static CUresult (*deallocate)(CUdeviceptr);

static int load(void) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 0;
  *(void**)&init = dlsym(library, "cuInit");
  *(void**)&device_get = dlsym(library, "cuDeviceGet");
  *(void**)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
  *(void**)&release = dlsym(library, "cuDevicePrimaryCtxRelease_v2");
  *(void**)&set_current = dlsym(library, "cuCtxSetCurrent");
  *(void**)&stream_create = dlsym(library, "cuStreamCreate");
  *(void**)&stream_destroy = dlsym(library, "cuStreamDestroy_v2");
  *(void**)&allocate = dlsym(library, "cuMemAlloc_v2");
  *(void**)&deallocate = dlsym(library, "cuMemFree_v2");
  return init && device_get && retain && release && set_current && stream_create && stream_destroy && allocate && deallocate;
}

static const char* mode = "sound";
static int is(const char* name) { return strcmp(mode, name) == 0; }

// Work on a current context: a stream, then memory; 0 when all went well.
static int work(void) {
  CUstream stream = NULL;
  if (stream_create(&stream, 0) != CUDA_SUCCESS) {
    if (is("crashes")) *(volatile int*)8 = 1;
    if (is("aborts")) abort();
    return 1;
  }
  CUdeviceptr memory = 0;
  int failed = allocate(&memory, 4096) != CUDA_SUCCESS;
  if (failed) {
    if (is("leaks") || (is("loses_when_told") && (getenv("LOSES") != NULL || access("loses.txt", F_OK) == 0))) return 1;
    while (is("hangs")) pause();
    if (is("exits")) exit(1);
  } else if (deallocate(memory) != CUDA_SUCCESS) {
    failed = 1;
  }
  if (is("grows")) return failed;
  if (stream_destroy(stream) != CUDA_SUCCESS) failed = 1;
  if (is("releases-twice")) stream_destroy(stream);
  return failed;
}

int main(int argc, char** argv) {
  if (argc > 1) mode = argv[1];
  const int cycles = argc > 2 ? atoi(argv[2]) : 1;
  if (is("calls-nothing")) return 0;
  if (!load()) {
    fprintf(stderr, "no driver\n");
    return 9;
  }
  CUdevice device = 0;
  CUcontext context = NULL;
  if (init(0) != CUDA_SUCCESS || device_get(&device, 0) != CUDA_SUCCESS) return 1;
  if (retain(&context, device) != CUDA_SUCCESS) return 1;
  int failed = set_current(context) != CUDA_SUCCESS;
  for (int i = 0; i < cycles && !failed; ++i) {
    cuaudit_cycle_begin();
    failed = work();
    cuaudit_cycle_end();
  }
  if (release(device) != CUDA_SUCCESS) failed = 1;
  if (is("crashes-always")) *(volatile int*)8 = 1;
  while (is("hangs-always")) pause();
  printf("cycles: %d\n", cycles);
  if (is("fails")) return 4;
  return failed;
}
