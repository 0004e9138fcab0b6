// reducer.c: leak 1 device_memory: libcublas.so.13+0x218110 returned without cuMemFree
// Made by cuaudit 0.1.0 from the driver calls of library_subject.
// Fails: cuEventCreate#1=OUT_OF_MEMORY,refuse
// The comments name the places in the program that made the calls. Errors of other calls are not looked at.
// Build: cc reducer.c -o reducer -lcuda, with -I and -L for the CUDA toolkit; run.sh does it. Defect v2-bfc04ca1e2115c10
#include <cuda.h>
#include <stdlib.h>

static int lifecycle(void) {
  CUcontext context = 0;
  CUdeviceptr memory = 0;
  CUevent event = 0;
  CUresult result;
  cuInit(0);  // libcublas.so.13+0x5a4c2c
  cuDevicePrimaryCtxRetain(&context, 0);  // libcublas.so.13+0x5b0059
  cuCtxSetCurrent(context);  // libcublas.so.13+0x5b02ce
  cuMemAlloc(&memory, 1024);  // libcublas.so.13+0x5b45ee
  result = cuEventCreate(&event, 2);  // libcublas.so.13+0x583e39
  if (result != CUDA_SUCCESS) {  // the call that fails
    return 1;
  }
  cuEventDestroy(event);  // libcublas.so.13+0x584183
  cuMemFree(memory);  // libcublas.so.13+0x5861a3
  return 0;
}

int main(int argc, char **argv) {
  int cycles = argc > 1 ? atoi(argv[1]) : 2;
  int failed = 0;
  for (; cycles > 0; --cycles) failed |= lifecycle();
  return failed;
}
