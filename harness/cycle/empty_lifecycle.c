/* SPDX-License-Identifier: MIT
 * empty_lifecycle.c: the control program of `cuaudit cycles`. In each cycle it takes a context, does nothing and releases the context.
 * A meter that grows here grows because of the driver, the C library or cuaudit.
 * Usage   empty_lifecycle CYCLES      exit status 3: no driver, or a driver call failed
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "include/cuaudit/mark.h"

typedef CUresult (*Init)(unsigned);
typedef CUresult (*Retain)(CUcontext *, CUdevice);
typedef CUresult (*Push)(CUcontext);
typedef CUresult (*Pop)(CUcontext *);
typedef CUresult (*Release)(CUdevice);

int main(int argc, char **argv) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  long cycles = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
  Init init;
  Retain retain;
  Push push;
  Pop pop;
  Release release;
  if (driver == NULL) return 3;
  *(void **)&init = dlsym(driver, "cuInit");
  *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
  *(void **)&push = dlsym(driver, "cuCtxPushCurrent_v2");
  *(void **)&pop = dlsym(driver, "cuCtxPopCurrent_v2");
  *(void **)&release = dlsym(driver, "cuDevicePrimaryCtxRelease_v2");
  if (init == NULL || retain == NULL || push == NULL || pop == NULL || release == NULL || init(0) != CUDA_SUCCESS) return 3;
  for (; cycles > 0; --cycles) {
    CUcontext context;
    cuaudit_cycle_begin();
    if (retain(&context, 0) != CUDA_SUCCESS || push(context) != CUDA_SUCCESS) return 3;
    if (pop(&context) != CUDA_SUCCESS || release(0) != CUDA_SUCCESS) return 3;
    cuaudit_cycle_end();
  }
  return 0;
}
