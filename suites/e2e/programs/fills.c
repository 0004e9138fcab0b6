/* SPDX-License-Identifier: MIT
 * fills.c: events that a program keeps from cycle to cycle, by one of several patterns; none is given back at the end.
 * Usage   fills HOW CYCLES [marked]
 *   ring     eight slots, each filled when it is first used     cache32, cache64   a key a cycle, the oldest goes when it is full
 *   first    what each of the first three cycles makes stays    once               what the fifth cycle makes stays
 *   each     one a cycle is lost                                tenth              one in every tenth cycle is lost
 *   limited  as each, and more than 15 cycles are refused
 */
#include <cuaudit/mark.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

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
