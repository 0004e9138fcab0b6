// SPDX-License-Identifier: MIT
// drifting.c: programs whose calls have another number or order from run to run; a definition chooses the program.
//
//   drifting FILE [ROUNDS [shuffles]]      every other run makes one more event than the runs between; the stream is lost when the event that
//                          every run makes fails. Grows FILE by a byte a run: at an odd length the additional event comes first
//     ROUNDS     as many events, each given back at once, come before all that
//     shuffles   instead, what comes after the rounds is done in an order that depends on the length, and nothing is lost
//   turns NAME MODE [ROUNDS] (TURNS)      two workers who take turns. NAME.runs grows by a byte a run: at an odd length the left one goes first
//     clean      every failure unwinds whole
//     loses      the right worker loses its memory when its event cannot be made
//     stops      a worker that cannot free its memory on the way back leaves its stream too
//     sometimes  every other run makes one more event, at whose failure a stream is lost; and a third thread asks for the memory that is
//                free, more often in every other run
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(TURNS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static int whose;    // turn it is: 0 left, 1 right
static int gone[2];  // a worker that has left takes no turns
static CUcontext context;
static const char *mode;
static int rounds = 3;

static int is_odd_run(const char *name) {
  struct stat facts = {0};
  char path[4096];
  int file;
  snprintf(path, sizeof(path), "%s.runs", name);
  file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0) return 0;
  (void)!write(file, ".", 1);
  (void)!fstat(file, &facts);
  close(file);
  return (int)(facts.st_size % 2);
}

static void take_turn(int self) {
  pthread_mutex_lock(&lock);
  while (whose != self && !gone[1 - self]) pthread_cond_wait(&passed, &lock);
}

static void pass_turn(int self) {
  whose = 1 - self;
  pthread_cond_broadcast(&passed);
  pthread_mutex_unlock(&lock);
}

static int is(const char *name) { return strcmp(mode, name) == 0; }

static int work(int right) {
  CUstream stream;
  CUdeviceptr memory;
  CUevent event;
  int failed = 1;
  if (cuStreamCreate(&stream, 0) != CUDA_SUCCESS) return 1;
  if (cuMemAlloc(&memory, 256) == CUDA_SUCCESS) {
    if (cuEventCreate(&event, 0) == CUDA_SUCCESS) {
      failed = cuEventDestroy(event) != CUDA_SUCCESS;
    } else if (is("loses") && right) {
      memory = 0;
    } else if (is("stops") && cuMemFree(memory) != CUDA_SUCCESS) {
      return 1;
    } else if (is("stops")) {
      memory = 0;
    }
    if (memory != 0 && cuMemFree(memory) != CUDA_SUCCESS) failed = 1;
  }
  if (cuStreamDestroy(stream) != CUDA_SUCCESS) failed = 1;
  return failed;
}

static long worker(int self) {
  long failed = 0;
  int i;
  for (i = 0; i < rounds && !failed; ++i) {
    take_turn(self);
    if (cuCtxPushCurrent(context) == CUDA_SUCCESS) {
      failed = work(self);
      if (cuCtxPopCurrent(NULL) != CUDA_SUCCESS) failed = 1;
    } else {
      failed = 1;
    }
    pass_turn(self);
  }
  pthread_mutex_lock(&lock);
  gone[self] = 1;
  pthread_cond_broadcast(&passed);
  pthread_mutex_unlock(&lock);
  return failed;
}

static void *left(void *unused) {
  (void)unused;
  return (void *)worker(0);
}

static void *right(void *unused) {
  (void)unused;
  return (void *)worker(1);
}

static void *asking(void *times) {
  size_t free_bytes, all;
  long i;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) return NULL;
  for (i = 0; i < (long)times; ++i) (void)cuMemGetInfo(&free_bytes, &all);
  cuCtxPopCurrent(NULL);
  return NULL;
}

static int sometimes(void) {
  CUstream stream;
  CUevent event;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return 1;
  const int stays = cuEventDestroy(event) != CUDA_SUCCESS;
  return stays | (cuStreamDestroy(stream) != CUDA_SUCCESS);
}

int main(int argc, char **argv) {
  pthread_t threads[3];
  void *result;
  int odd = is_odd_run(argc > 1 ? argv[1] : "/dev"), count, i, failed = 0;
  mode = argc > 2 ? argv[2] : "clean";
  if (argc > 3) rounds = atoi(argv[3]);
  whose = !odd;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  count = is("sometimes") ? 3 : 2;
  pthread_create(&threads[0], NULL, &left, NULL);
  pthread_create(&threads[1], NULL, &right, NULL);
  if (count == 3) pthread_create(&threads[2], NULL, &asking, (void *)(odd ? 5L : 3L));
  for (i = 0; i < count; ++i) {
    pthread_join(threads[i], &result);
    failed |= result != NULL;
  }
  if (!failed && count == 3 && odd) {
    if (cuCtxPushCurrent(context) != CUDA_SUCCESS) failed = 1;
    else failed = sometimes() | (cuCtxPopCurrent(NULL) != CUDA_SUCCESS);
  }
  return cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS || failed;
}

#else

static long runs(const char *path) {
  struct stat facts = {0};
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0) return 0;
  (void)!write(file, ".", 1);
  (void)!fstat(file, &facts);
  close(file);
  return (long)facts.st_size;
}

static int sometimes(void) {
  CUevent event;
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) return 1;
  return cuEventDestroy(event) != CUDA_SUCCESS;
}

static int always(CUevent *event) { return cuEventCreate(event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS; }

static int one_event(void) {
  CUevent event;
  return cuEventCreate(&event, 0) != CUDA_SUCCESS || cuEventDestroy(event) != CUDA_SUCCESS;
}

static int one_stream(void) {
  CUstream stream;
  return cuStreamCreate(&stream, 0) != CUDA_SUCCESS || cuStreamDestroy(stream) != CUDA_SUCCESS;
}

static int one_buffer(void) {
  CUdeviceptr buffer;
  return cuMemAlloc(&buffer, 64) != CUDA_SUCCESS || cuMemFree(buffer) != CUDA_SUCCESS;
}

// Each of the three four times.
static int shuffled(long seed) {
  int (*const all[3])(void) = {one_event, one_stream, one_buffer};
  int left[3] = {4, 4, 4};
  int failed = 0;
  int i;
  unsigned state = (unsigned)seed;
  for (i = 0; i < 12 && !failed; ++i) {
    int choice = (int)((state = state * 1103515245U + 12345U) >> 16U) % 3;
    while (left[choice] == 0) choice = (choice + 1) % 3;
    --left[choice];
    failed = all[choice]();
  }
  return failed;
}

int main(int argc, char **argv) {
  long run = runs(argc > 1 ? argv[1] : "/dev/null");
  int rounds = argc > 2 ? atoi(argv[2]) : 0;
  int failed = 0;
  CUcontext context;
  CUstream stream;
  CUevent event;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 1;
  for (; rounds > 0 && !failed; --rounds) failed = one_event();
  if (argc > 3) {
    failed = failed || shuffled(run);
    cuCtxDestroy(context);
    return failed;
  }
  if (run % 2 == 1 && !failed) failed = sometimes();
  if (!failed && cuStreamCreate(&stream, 0) == CUDA_SUCCESS) {
    if (always(&event) == 0) {
      cuEventDestroy(event);
      cuStreamDestroy(stream);
    } else {
      failed = 1;
    }
  } else {
    failed = 1;
  }
  cuCtxDestroy(context);
  return failed;
}

#endif
