// SPDX-License-Identifier: MIT
// blame_library.c: a library for blame_uses.c. Built several times, with LIBRARY as the first part of its names.
#include <cuda.h>

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define OUT_OF_LINE __attribute__((noinline))

static CUstream stream;
static CUevent event;
static CUdeviceptr memory;

// Ten calls that can fail, in four functions. Whichever fails, everything is given back, and the library never starts again.
OUT_OF_LINE static int queue_open(void) {
  if (cuStreamCreate(&stream, 0) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) {
    cuStreamDestroy(stream);
    return 1;
  }
  return 0;
}
OUT_OF_LINE static int memory_open(void) {
  int device = 0, value = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return 1;
  if (cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device) != CUDA_SUCCESS) return 1;
  return cuMemAlloc(&memory, 4096) != CUDA_SUCCESS;
}
OUT_OF_LINE static int first_work(void) {
  if (cuMemsetD8Async(memory, 0, 4096, stream) != CUDA_SUCCESS) return 1;
  if (cuEventRecord(event, stream) != CUDA_SUCCESS) return 1;
  return cuEventSynchronize(event) != CUDA_SUCCESS;
}
OUT_OF_LINE static int last_work(void) {
  if (cuMemsetD8Async(memory, 1, 4096, stream) != CUDA_SUCCESS) return 1;
  return cuStreamSynchronize(stream) != CUDA_SUCCESS;
}
static void queue_close(void) {
  cuEventDestroy(event);
  cuStreamDestroy(stream);
}
static int start(void) {
  if (queue_open() != 0) return 1;
  if (memory_open() != 0) {
    queue_close();
    return 1;
  }
  if (first_work() != 0 || last_work() != 0) {
    cuMemFree(memory);
    queue_close();
    return 1;
  }
  return 0;
}
static int has_failed;
int JOINED(LIBRARY, _init)(int retries) {
  if (has_failed && !retries) return 1;
  has_failed = start();
  return has_failed;
}
void JOINED(LIBRARY, _done)(void) {
  cuMemFree(memory);
  queue_close();
}

// Loses a stream in a function that has no name once the library is stripped.
OUT_OF_LINE static int lose_inside(int wrong) {
  CUstream lost;
  CUevent second;
  if (cuStreamCreate(&lost, 0) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&second, 0) != CUDA_SUCCESS) {
    if (!wrong) cuStreamDestroy(lost);
    return 1;
  }
  cuEventDestroy(second);
  cuStreamDestroy(lost);
  return 0;
}
OUT_OF_LINE static int pass_on(int wrong) { return lose_inside(wrong) + 0; }
int JOINED(LIBRARY, _lose)(int wrong) { return pass_on(wrong) != 0 ? 1 : 0; }

// The same in a function that exists only inside of the one that others can call.
__attribute__((always_inline)) static inline int inlined_lose(int wrong) {
  CUdeviceptr lost;
  CUevent second;
  if (cuMemAlloc(&lost, 256) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&second, 0) != CUDA_SUCCESS) {
    if (!wrong) cuMemFree(lost);
    return 1;
  }
  cuEventDestroy(second);
  cuMemFree(lost);
  return 0;
}
int JOINED(LIBRARY, _lose_inlined)(int wrong) { return inlined_lose(wrong); }
