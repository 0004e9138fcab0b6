// SPDX-License-Identifier: MIT
// steps.c: a lifecycle of N driver calls in stages of ten, each call from a call stack of its own.
// Usage   steps N [leaking]      leaking: the unwinding of every seventh stage forgets its event
//
// A stage makes five objects and gives them back; one that fails gives back what it has and ends the program with status 1. So unwinding
// from a fault is at most a stage and the context, and the calls of a second order grow with N like those of the first. The way down to a
// stage spells its number in binary digits, one of two functions for each, so that no two stages have a call stack in common.
//
// With STEPS_HELD=DIRECTORY in the environment, a program in which a call failed writes a byte to the pipe `asks` of the directory and ends
// after it has read one from `goes`, or when nobody writes to that any more.
#include <cuda.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kStage = 10, kAround = 6 };

static int leaking;

static int stage(int number) {
  CUstream stream = NULL;
  CUevent event = NULL;
  CUdeviceptr small = 0, large = 0;
  void *host = NULL;
  int failed = 0;
  failed = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
  if (failed) stream = NULL;
  if (!failed && (failed = cuEventCreate(&event, 0) != CUDA_SUCCESS)) event = NULL;
  if (!failed && (failed = cuMemAlloc(&small, 512) != CUDA_SUCCESS)) small = 0;
  if (!failed && (failed = cuMemAlloc(&large, 65536) != CUDA_SUCCESS)) large = 0;
  if (!failed && (failed = cuMemHostAlloc(&host, 4096, 0) != CUDA_SUCCESS)) host = NULL;
  if (host != NULL && cuMemFreeHost(host) != CUDA_SUCCESS) failed = 1;
  if (large != 0 && cuMemFree(large) != CUDA_SUCCESS) failed = 1;
  if (small != 0 && cuMemFree(small) != CUDA_SUCCESS) failed = 1;
  if (event != NULL && !(leaking && failed && number % 7 == 3) && cuEventDestroy(event) != CUDA_SUCCESS) failed = 1;
  if (stream != NULL && cuStreamDestroy(stream) != CUDA_SUCCESS) failed = 1;
  return failed;
}

static int down(int number, int rest, int digits);
static int zero(int number, int rest, int digits) {
  int failed = down(number, rest >> 1, digits - 1);
  __asm__ volatile("");
  return failed;
}
static int one(int number, int rest, int digits) {
  int failed = down(number, rest >> 1, digits - 1);
  __asm__ volatile("");
  return failed;
}
static int down(int number, int rest, int digits) {
  if (digits == 0) return stage(number);
  int failed = (rest & 1) != 0 ? one(number, rest, digits) : zero(number, rest, digits);
  __asm__ volatile("");
  return failed;
}

static int open_pipe(const char *directory, const char *name, int flags) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s", directory, name);
  return open(path, flags);
}

static void wait_to_go(void) {
  const char *directory = getenv("STEPS_HELD");
  char byte = '.';
  int asks, goes;
  if (directory == NULL) return;
  goes = open_pipe(directory, "goes", O_RDONLY);
  asks = open_pipe(directory, "asks", O_WRONLY);
  if (goes >= 0 && asks >= 0 && write(asks, &byte, 1) == 1) (void)!read(goes, &byte, 1);
  if (goes >= 0) close(goes);
  if (asks >= 0) close(asks);
}

int main(int argc, char **argv) {
  int calls = argc > 1 ? atoi(argv[1]) : 20;
  int stages = calls > kAround ? (calls - kAround) / kStage : 0;
  int digits = 0, i, failed = 0;
  CUcontext context;
  leaking = argc > 2 && strcmp(argv[2], "leaking") == 0;
  while ((1 << digits) < stages) ++digits;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  for (i = 0; i < stages && !failed; ++i) failed = down(i, i, digits);
  if (cuCtxSynchronize() != CUDA_SUCCESS) failed = 1;
  if (cuCtxPopCurrent(NULL) != CUDA_SUCCESS) failed = 1;
  if (cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS) failed = 1;
  if (failed) wait_to_go();
  return failed;
}
