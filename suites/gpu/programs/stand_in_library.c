// SPDX-License-Identifier: MIT
// stand_in_library.c: stands for a library of NVIDIA's where there is none: it makes and destroys a handle as cuBLAS does, finds the driver
// with dlopen, and loses what it holds when a later call fails.
//
//   Errors    0, or the number of the call that failed
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>

enum { kEvents = 3 };

struct handle {
  CUdeviceptr workspace;
  CUstream stream;
  CUevent event[kEvents];
};

static struct {
  CUresult (*init)(unsigned int);
  CUresult (*retain)(CUcontext *, CUdevice);
  CUresult (*set_current)(CUcontext);
  CUresult (*attribute)(int *, CUdevice_attribute, CUdevice);
  CUresult (*allocate)(CUdeviceptr *, size_t);
  CUresult (*release)(CUdeviceptr);
  CUresult (*make_stream)(CUstream *, unsigned int);
  CUresult (*destroy_stream)(CUstream);
  CUresult (*make_event)(CUevent *, unsigned int);
  CUresult (*destroy_event)(CUevent);
} driver;

static int load(void) {
  static const char *const names[] = {
      "cuInit",       "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",    "cuDeviceGetAttribute", "cuMemAlloc_v2",
      "cuMemFree_v2", "cuStreamCreate",           "cuStreamDestroy_v2", "cuEventCreate",        "cuEventDestroy_v2"};
  void **const entries = (void **)&driver;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 1;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    entries[i] = dlsym(library, names[i]);
    if (entries[i] == NULL) return 1;
  }
  return 0;
}

// What each process does once, as the CUDA runtime does.
static int start(void) {
  static int started = 0;
  CUcontext context;
  int units = 0;
  if (started) return 0;
  if (driver.init == NULL && load() != 0) return 1;
  if (driver.init(0)) return 2;
  if (driver.retain(&context, 0)) return 3;
  if (driver.set_current(context)) return 4;
  if (driver.attribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0)) return 5;
  started = 1;
  return 0;
}

int cublasCreate_v2(void **made) {
  const int wrong = start();
  struct handle *const handle = wrong == 0 ? calloc(1, sizeof(*handle)) : NULL;
  if (handle == NULL) return wrong == 0 ? 6 : wrong;
  if (driver.allocate(&handle->workspace, 65536)) {
    free(handle);
    return 7;
  }
  if (driver.make_stream(&handle->stream, CU_STREAM_NON_BLOCKING)) {
    free(handle);  // and not the workspace
    return 8;
  }
  for (int i = 0; i < kEvents; ++i) {
    if (driver.make_event(&handle->event[i], CU_EVENT_DISABLE_TIMING)) {
      driver.destroy_stream(handle->stream);  // and not the events before this one
      driver.release(handle->workspace);
      free(handle);
      return 9;
    }
  }
  *made = handle;
  return 0;
}

int cublasDestroy_v2(void *object) {
  struct handle *const handle = object;
  int failed = 0;
  for (int i = 0; i < kEvents; ++i) failed |= driver.destroy_event(handle->event[i]) != CUDA_SUCCESS;
  failed |= driver.destroy_stream(handle->stream) != CUDA_SUCCESS;
  failed |= driver.release(handle->workspace) != CUDA_SUCCESS;
  free(handle);
  return failed ? 10 : 0;
}
