// SPDX-License-Identifier: MIT
// late_constructor.c: with LIBRARY, a library whose constructor loses a heap block and a stream, and its destructor an event; else the
// program late_constructor, which opens that library when its allocation fails, and closes it.
//
// Usage   late_constructor LIBRARY
#include <cuda.h>
#ifdef LIBRARY
#include <stdlib.h>

static void *block;
static CUstream stream;
static CUevent event;

__attribute__((constructor)) static void make(void) {
  block = malloc(100);
  if (block == NULL || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) abort();
}

__attribute__((destructor)) static void drop(void) {
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) abort();
}
#else
#include <dlfcn.h>

static void *open_library(const char *file) { return dlopen(file, RTLD_NOW); }
static void close_library(void *library) { (void)dlclose(library); }

int main(int count, char **argument) {
  CUdevice device;
  CUcontext context;
  CUdeviceptr memory;
  if (count < 2 || cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 2;
  if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) return 2;
  if (cuMemAlloc(&memory, 4096) != CUDA_SUCCESS) {
    void *const library = open_library(argument[1]);
    if (library != NULL) close_library(library);
    return 1;
  }
  (void)cuMemFree(memory);
  return cuDevicePrimaryCtxRelease(device) != CUDA_SUCCESS;
}
#endif
