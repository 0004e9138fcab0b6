// SPDX-License-Identifier: MIT
// threads.c: threads that call the driver at the same time; a definition chooses the program.
//
//   threads              eight threads, each with its own current context entry, stream and buffer, a hundred rounds each
//   hammer (HAMMER)      four threads call without a pause while something difficult happens beside them
//     fork               the first thread forks twenty times; each child calls the driver it inherited (errors, never a hang) and leaves
//     small_stack        the threads have the smallest stack that the system allows
#include <cuda.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(HAMMER)

enum { kThreads = 4, kForks = 20, kRounds = 200 };

static CUcontext context;
static atomic_int stop;
static atomic_int failures;

static void round_trip(void) {
  CUdeviceptr memory = 0;
  if (cuMemAlloc(&memory, 256) != CUDA_SUCCESS || cuMemsetD8(memory, 1, 256) != CUDA_SUCCESS || cuMemFree(memory) != CUDA_SUCCESS) {
    atomic_fetch_add(&failures, 1);
  }
}

static void *work(void *rounds) {
  int left = *(const int *)rounds;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) atomic_fetch_add(&failures, 1);
  while (left != 0 && !atomic_load(&stop)) {
    round_trip();
    if (left > 0) --left;
  }
  cuCtxPopCurrent(NULL);
  return NULL;
}

static int fork_and_call(void) {
  int i, bad = 0;
  for (i = 0; i < kForks; ++i) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
      CUdeviceptr memory = 0;
      _exit(cuMemAlloc(&memory, 64) == CUDA_SUCCESS);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++bad;
  }
  return bad;
}

int main(int argc, char **argv) {
  const int forking = argc > 1 && strcmp(argv[1], "fork") == 0;
  const int rounds = forking ? -1 : kRounds;
  pthread_t thread[kThreads];
  pthread_attr_t attributes;
  int i, bad = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  pthread_attr_init(&attributes);
  if (!forking && pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) != 0) return 2;
  for (i = 0; i < kThreads; ++i) {
    if (pthread_create(&thread[i], &attributes, &work, (void *)&rounds) != 0) return 2;
  }
  if (forking) bad = fork_and_call();
  atomic_store(&stop, forking);
  for (i = 0; i < kThreads; ++i) pthread_join(thread[i], NULL);
  pthread_attr_destroy(&attributes);
  cuDevicePrimaryCtxRelease(0);
  printf("bad %d failures %d\n", bad, atomic_load(&failures));
  return bad != 0 || atomic_load(&failures) != 0;
}

#else

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

#endif
