/* SPDX-License-Identifier: MIT
 * rebuilt.c: three functions that each lose something when a later call fails. Built once as it is and once with CHANGED, as the next
 * release of the same program: other lines, another order of functions, more calls before the losses. The losses stay the same. Exit    0
 * all calls succeeded, 1 one failed
 */
#include <cuda.h>

#ifdef CHANGED
static int measure(void) {
  size_t unused = 0, total = 0;
  int count = 0;
  return cuMemGetInfo(&unused, &total) != CUDA_SUCCESS || cuDeviceGetCount(&count) != CUDA_SUCCESS;
}
#define MORE_CALLS \
  if (measure()) return 1
#else
#define MORE_CALLS
#endif

static int load(void);

static int open_streams(void) {
  CUstream work = NULL, copy = NULL;
  MORE_CALLS;
  if (cuStreamCreate(&work, CU_STREAM_DEFAULT) != CUDA_SUCCESS) return 1;
  if (cuStreamCreate(&copy, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 1; /* loses `work` */
  cuStreamDestroy(copy);
  cuStreamDestroy(work);
  return 0;
}

#ifndef CHANGED
static int load(void) {
  CUdeviceptr memory = 0;
  CUevent loaded = NULL;
  if (cuMemAlloc(&memory, 4096) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&loaded, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return 1; /* loses `memory` */
  cuEventDestroy(loaded);
  cuMemFree(memory);
  return 0;
}
#endif

static int use_device(CUdevice device) {
  CUcontext context = NULL;
  MORE_CALLS;
  if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return 1;
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS) return 1; /* loses the reference */
  const int failed = open_streams() || load();
  cuDevicePrimaryCtxRelease(device);
  return failed;
}

#ifdef CHANGED
static int load(void) {
  CUdeviceptr memory = 0;
  CUevent loaded = NULL;
  MORE_CALLS;
  if (cuMemAlloc(&memory, 8192) != CUDA_SUCCESS) return 1;
  MORE_CALLS; /* loses `memory`, too */
  if (cuEventCreate(&loaded, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return 1;
  cuEventDestroy(loaded);
  cuMemFree(memory);
  return 0;
}
#endif

int main(void) {
  CUdevice device = 0;
  CUcontext outer = NULL;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxCreate(&outer, NULL, 0, device) != CUDA_SUCCESS) return 1;
  const int failed = use_device(device);
  cuCtxDestroy(outer);
  return failed;
}
