// reducer.c: orphaned 1 stream: picture_steps returned without cuStreamDestroy
// Made by cuaudit 0.1.0 from the driver calls of picture_pool.
// Fails: cuEventCreate#1=OUT_OF_MEMORY,refuse
// The comments name the places in the program that made the calls. Errors of other calls are not looked at.
// Build: cc reducer.c -o reducer -lcuda, with -I and -L for the CUDA toolkit; run.sh does it. Defect v2-8b2d0cbecf456a9a
#include <cuda.h>
#include <stdlib.h>

static int lifecycle(void) {
  CUcontext context1 = 0;
  CUstream stream = 0;
  CUevent event = 0;
  CUcontext context2 = 0;
  CUresult result;
  cuInit(0);  // run_cycle, picture_pool.c:215
  cuDevicePrimaryCtxRetain(&context1, 0);  // run_cycle, picture_pool.c:217
  cuCtxPushCurrent(context1);  // picture_alloc, picture_pool.c:123
  cuStreamCreate(&stream, 1);  // picture_steps, picture_pool.c:110
  result = cuEventCreate(&event, 2);  // picture_steps, picture_pool.c:111
  if (result != CUDA_SUCCESS) {  // the call that fails
    cuCtxPopCurrent(&context2);  // leave, picture_pool.c:58
    cuDevicePrimaryCtxRelease(0);  // run_cycle, picture_pool.c:220
    return 1;
  }
  cuCtxPopCurrent(&context2);  // leave, picture_pool.c:58
  cuEventDestroy(event);  // picture_free, picture_pool.c:92
  cuStreamDestroy(stream);  // picture_free, picture_pool.c:93
  cuDevicePrimaryCtxRelease(0);  // run_cycle, picture_pool.c:220
  return 0;
}

int main(int argc, char **argv) {
  int cycles = argc > 1 ? atoi(argv[1]) : 2;
  int failed = 0;
  for (; cycles > 0; --cycles) failed |= lifecycle();
  return failed;
}
