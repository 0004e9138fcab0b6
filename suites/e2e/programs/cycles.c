// SPDX-License-Identifier: MIT
// cycles.c: programs that mark their cycles (cuaudit/mark.h); without cuaudit the marks are tests of a null address. A definition chooses
// the program.
//
//   marked clean|leaking [CYCLES]      default 5; tells where its cycles and phases are. leaking: one event a cycle stays
//   fills HOW CYCLES [marked] (FILLS)      keeps events from cycle to cycle, by one of several patterns; none is given back at the end
//     ring     eight slots, each filled when it is first used     cache32, cache64   a key a cycle, the oldest goes when it is full
//     first    what each of the first three cycles makes stays    once               what the fifth cycle makes stays
//     each     one a cycle is lost                                tenth              one in every tenth cycle is lost
//     limited  as each, and more than 15 cycles are refused
//   looping HOW CYCLES (LOOPING)      reports each cycle; what goes wrong in one is over with it, or is not
//     clean · leaks: a stream when the buffer fails · crashes, exits: when the buffer fails · late: aborts at its end when a cycle failed
//     poisoned: once the buffer has failed, every later cycle loses an event
//     widens: a second buffer is made anew in each cycle, a KiB larger
#include <cuaudit/mark.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(FILLS)

static CUevent slots[64];

static int keep(int slot) { return cuEventCreate(&slots[slot], CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS; }

static int replace(int slot) {
  if (slots[slot] != NULL && cuEventDestroy(slots[slot]) != CUDA_SUCCESS) return 1;
  return keep(slot);
}

static int lose(void) {
  CUevent event;
  return cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS;
}

static int cycle(const char *how, int number) {
  if (strcmp(how, "ring") == 0) return slots[number % 8] == NULL ? keep(number % 8) : 0;
  if (strcmp(how, "cache32") == 0) return replace(number % 32);
  if (strcmp(how, "cache64") == 0) return replace(number % 64);
  if (strcmp(how, "first") == 0) return number < 3 ? lose() : 0;
  if (strcmp(how, "once") == 0) return number == 4 ? lose() : 0;
  if (strcmp(how, "tenth") == 0) return number % 10 == 9 ? lose() : 0;
  return lose();
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "each";
  int cycles = argc > 2 ? atoi(argv[2]) : 10;
  int marked = argc > 3;
  int failed = 0;
  int i;
  CUcontext context;
  if (strcmp(how, "limited") == 0 && cycles > 15) return 2;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) return 1;
  for (i = 0; i < cycles && !failed; ++i) {
    if (marked) cuaudit_cycle_begin();
    failed = cycle(how, i);
    if (marked) cuaudit_cycle_end();
  }
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  return failed;
}

#elif defined(LOOPING)

static const char *how = "clean";
static int poisoned, failed;

static int is(const char *name) { return strcmp(how, name) == 0; }

static CUdeviceptr wide;
static size_t wide_bytes;

static CUresult widen(void) {
  CUresult result = wide == 0 ? CUDA_SUCCESS : cuMemFree(wide);
  if (result != CUDA_SUCCESS) return result;
  wide = 0;
  return cuMemAlloc(&wide, wide_bytes += 1024);
}

static CUresult cycle(void) {
  CUstream stream;
  CUdeviceptr buffer;
  CUevent event;
  CUresult freed, result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemAlloc(&buffer, 4096);
  if (result != CUDA_SUCCESS) {
    if (is("crashes")) abort();
    if (is("exits")) exit(9);
    if (is("poisoned")) poisoned = 1;
    if (!is("leaks")) cuStreamDestroy(stream);
    return result;
  }
  if (poisoned) (void)cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  freed = cuMemFree(buffer);
  if (freed != CUDA_SUCCESS) result = freed;
  freed = cuStreamDestroy(stream);
  return freed != CUDA_SUCCESS ? freed : result;
}

int main(int argc, char **argv) {
  int cycles = argc > 2 ? atoi(argv[2]) : 4, i;
  CUresult result;
  CUcontext context;
  if (argc > 1) how = argv[1];
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  for (i = 0; i < cycles; ++i) {
    cuaudit_cycle_begin();
    if (is("widens")) widen();
    result = cycle();
    failed = failed || result != CUDA_SUCCESS;
    cuaudit_report((int)result);
    cuaudit_cycle_end();
  }
  if (wide != 0) cuMemFree(wide);
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  if (failed && is("late")) abort();
  return 0;
}

#else

int main(int argc, char **argv) {
  int leaking = argc > 1 && strcmp(argv[1], "leaking") == 0;
  int cycles = argc > 2 ? atoi(argv[2]) : 5;
  int i, status = 0;
  CUcontext context;
  CUstream warm;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS || cuStreamCreate(&warm, 0) != CUDA_SUCCESS) return 1;
  for (i = 0; i < cycles; ++i) {
    CUevent event = NULL;
    cuaudit_cycle_begin();
    cuaudit_phase(CUAUDIT_INIT);
    if (cuEventCreate(&event, 0) != CUDA_SUCCESS) {
      event = NULL;
      status = 1;
    }
    cuaudit_phase(CUAUDIT_WORK);
    if (event != NULL && cuEventRecord(event, warm) != CUDA_SUCCESS) status = 1;
    cuaudit_phase(CUAUDIT_TEARDOWN);
    if (event != NULL && !leaking && cuEventDestroy(event) != CUDA_SUCCESS) status = 1;
    cuaudit_cycle_end();
  }
  cuStreamDestroy(warm);
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  printf("marks %s\n", cuaudit_mark ? "seen" : "free");
  return status;
}

#endif
