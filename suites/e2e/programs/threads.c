// SPDX-License-Identifier: MIT
// threads.c: eight threads, each with its own current context entry, stream and buffer, a hundred rounds each.
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>

enum { kThreads = 8, kRounds = 100 };

typedef struct Worker {
  pthread_t thread;
  CUcontext context;
  int number;
  int good;
} Worker;

static void *work(void *argument) {
  Worker *self = argument;
  int round;
  if (cuCtxPushCurrent(self->context) != CUDA_SUCCESS) return NULL;
  for (round = 0; round < kRounds; ++round) {
    CUstream stream;
    CUdeviceptr memory;
    int given = self->number * kRounds + round, back = -1;
    if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) break;
    if (cuMemAlloc(&memory, 256) == CUDA_SUCCESS) {
      if (cuMemcpyHtoDAsync(memory, &given, sizeof(given), stream) == CUDA_SUCCESS &&
          cuMemcpyDtoHAsync(&back, memory, sizeof(back), stream) == CUDA_SUCCESS && cuStreamSynchronize(stream) == CUDA_SUCCESS &&
          back == given) {
        ++self->good;
      }
      cuMemFree(memory);
    }
    cuStreamDestroy(stream);
  }
  cuCtxPopCurrent(NULL);
  return NULL;
}

int main(void) {
  Worker worker[kThreads];
  CUcontext context;
  int i, good = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  for (i = 0; i < kThreads; ++i) {
    worker[i] = (Worker){.context = context, .number = i};
    if (pthread_create(&worker[i].thread, NULL, &work, &worker[i]) != 0) return 2;
  }
  for (i = 0; i < kThreads; ++i) {
    pthread_join(worker[i].thread, NULL);
    good += worker[i].good;
  }
  if (cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS) return 1;
  printf("good %d\n", good);
  return good == kThreads * kRounds ? 0 : 1;
}
