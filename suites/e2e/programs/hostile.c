// SPDX-License-Identifier: MIT
// hostile.c: programs that behave badly as soon as the allocation in the middle of their lifecycle fails.
// Usage   hostile crash|abort|hang|leave|shrug|kill|give_up|half_exit|other|daemon|flood|always_crash|always_hang
//   leave    _exit(1) in mid-flight · shrug  exit(0) there · give_up  exit(1) right after the fault
//   other    unwinds, but always ends with status 7 · half_exit  as give_up, with an exit handler that releases half of what there is
//   daemon   leaves a child behind that holds the output open, 20 s at most · flood  10 MB on stdout · always_*  without any fault
#include <cuda.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *mode = "";

static CUcontext context;
static CUstream stream;
static CUevent event;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static void misbehave(void) {
  if (is("crash")) raise(SIGSEGV);
  if (is("abort")) abort();
  while (is("hang")) pause();
  if (is("leave")) _exit(1);
  if (is("shrug")) exit(0);
  if (is("kill")) kill(getpid(), SIGKILL);
  if (is("give_up") || is("half_exit")) exit(1);
}

static void half(void) { cuEventDestroy(event); }

static void flood(void) {
  static char line[1024];
  int i;
  memset(line, 'x', sizeof(line));
  line[sizeof(line) - 1] = '\n';
  for (i = 0; i < 10 * 1024; ++i) fwrite(line, 1, sizeof(line), stdout);
}

int main(int argc, char **argv) {
  CUdeviceptr memory;
  int status = 0;
  if (argc > 1) mode = argv[1];
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 1;
  if (cuStreamCreate(&stream, 0) != CUDA_SUCCESS) {
    cuCtxDestroy(context);
    return 1;
  }
  if (is("half_exit") && (cuEventCreate(&event, 0) != CUDA_SUCCESS || atexit(&half) != 0)) return 2;
  if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) {
    misbehave();
    status = 1;
  } else {
    cuMemFree(memory);
  }
  if (is("always_crash")) raise(SIGSEGV);
  while (is("always_hang")) pause();
  if (is("daemon") && fork() == 0) {
    setsid();
    alarm(20);
    for (;;) pause();
  }
  if (is("flood")) flood();
  cuStreamDestroy(stream);
  cuCtxDestroy(context);
  return is("other") ? 7 : status;
}
