// SPDX-License-Identifier: MIT
// host_thread.c: a joined thread, a detached one, and a joined one again; what the program does when one of them cannot be started.
// Usage   host_thread repaired|forgets
//   forgets   the first thread is not joined when a later one cannot be had
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

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
  status = run(argc > 1 && strcmp(argv[1], "forgets") == 0);
  cuDevicePrimaryCtxRelease(0);
  return status;
}
