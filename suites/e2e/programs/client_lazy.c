// SPDX-License-Identifier: MIT
// client_lazy.c: calls through the procedure linkage table, bound at the first call (or at once with -z now).
// Story   the direct calls of an ordinary program: no address of an entry point is taken.
#include <cuda.h>
#include <stdio.h>

int main(void) {
  CUdevice device = 0;
  CUcontext context = NULL;
  CUdeviceptr memory = 0;
  int given = 42, back = 0, failed = 1;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxCreate(&context, NULL, 0, device) != CUDA_SUCCESS) return 1;
  if (cuMemAlloc(&memory, 4096) == CUDA_SUCCESS) {
    failed = cuMemcpyHtoD(memory, &given, sizeof(given)) != CUDA_SUCCESS || cuMemcpyDtoH(&back, memory, sizeof(back)) != CUDA_SUCCESS;
    cuMemFree(memory);
  }
  cuCtxDestroy(context);
  if (!failed) printf("answer %d\n", back);
  return failed;
}
