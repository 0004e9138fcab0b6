// SPDX-License-Identifier: MIT
// host_oom.c: host allocations and threads that fail one by one, between driver calls; a definition chooses the program.
//
//   host_oom repaired|pinned|block|crashes      three allocations; what one of them loses when it fails
//     pinned   the pinned buffer stays when the block that describes it cannot be had
//     block    a block that cannot grow is lost
//     crashes  writes through the null
//   host_thread repaired|forgets (HOST_THREAD)      a joined thread, a detached one, and a joined one again
//     forgets  the first thread is not joined when a later one cannot be had
//   without a word: repaired; below a folder "wrong": block, forgets
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(HOST_THREAD)

static atomic_int running;

static void *work(void *argument) {
  if (argument != NULL) atomic_fetch_sub(&running, 1);
  return argument;
}

// The one that nobody joins; waited for, so that it is not killed by the end of the program.
static int start_detached(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  int result;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  atomic_fetch_add(&running, 1);
  result = pthread_create(&thread, &attributes, work, &running);
  pthread_attr_destroy(&attributes);
  if (result != 0) atomic_fetch_sub(&running, 1);
  while (atomic_load(&running) != 0) {
  }
  return result;
}

static int run(int forgets) {
  pthread_t first, last;
  int result = pthread_create(&first, NULL, work, NULL);
  if (result != 0) return 1;
  result = start_detached();
  if (result == 0) {
    result = pthread_create(&last, NULL, work, NULL);
    if (result == 0) pthread_join(last, NULL);
  }
  if (result == 0 || !forgets) pthread_join(first, NULL);
  return result != 0;
}

int main(int argc, char **argv) {
  CUcontext context;
  int status;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 9;
  status = run(argc > 1 ? strcmp(argv[1], "forgets") == 0 : strstr(argv[0], "/wrong/") != NULL);
  cuDevicePrimaryCtxRelease(0);
  return status;
}

#else

typedef struct Buffer {
  void *pinned;
  char *name;
} Buffer;

static const char *mode;

static int open_buffer(Buffer **out) {
  Buffer *buffer;
  void *pinned = NULL;
  if (cuMemHostAlloc(&pinned, 4096, 0) != CUDA_SUCCESS) return 1;
  buffer = calloc(1, sizeof(*buffer));
  if (buffer == NULL && strcmp(mode, "crashes") != 0) {
    if (strcmp(mode, "pinned") != 0) cuMemFreeHost(pinned);
    return 1;
  }
  *(void *volatile *)&buffer->pinned = pinned;
  *out = buffer;
  return 0;
}

static void close_buffer(Buffer *buffer) {
  if (buffer == NULL) return;
  free(buffer->name);
  cuMemFreeHost(buffer->pinned);
  free(buffer);
}

int main(int argc, char **argv) {
  CUcontext context;
  Buffer *buffer = NULL;
  char *volatile scratch;
  char *volatile larger;
  int status = 0;
  mode = argc > 1 ? argv[1] : strstr(argv[0], "/wrong/") != NULL ? "block" : "repaired";
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 9;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) return 9;
  scratch = malloc(64);
  if (scratch == NULL) status = 1;
  if (status == 0) status = open_buffer(&buffer);
  if (status == 0) {
    buffer->name = strdup("a name");  // the C library allocates: not made to fail
    larger = realloc(scratch, 6000);
    if (larger == NULL) status = 2;
    if (larger != NULL || strcmp(mode, "block") == 0) scratch = larger;
  }
  close_buffer(buffer);
  free(scratch);
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  return status;
}

#endif
