// SPDX-License-Identifier: MIT
// drifting.c: every other run makes one more event than the runs between; the stream is lost when the event that every run makes fails.
// Usage   drifting FILE [ROUNDS [shuffles]]      grows FILE by a byte a run: at an odd length the additional event comes first
//   ROUNDS     as many events, each given back at once, come before all that
//   shuffles   instead, what comes after the rounds is done in an order that depends on the length, and nothing is lost
#include <cuda.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
