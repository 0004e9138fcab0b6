/* SPDX-License-Identifier: MIT
 * mark_cost.c: what a marked cycle costs a program: nanoseconds of processor time for each of many cycles that do nothing, less those of
 * the same loop without marks. Run it under cuaudit with --no-host, by default, and with --host. Prints one JSON line.
 * Usage: mark_cost [cycles] */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuaudit/mark.h"

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double Cycles(long count, int marked) {
  const double start = Now();
  for (volatile long i = 0; i < count; ++i) {
    if (marked) cuaudit_cycle_begin();
    if (marked) cuaudit_cycle_end();
  }
  return (Now() - start) / (double)count;
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 2000;
  if (cuInit(0) != CUDA_SUCCESS) return 3;
  (void)Cycles(10, 1);
  const double plain = Cycles(count, 0);
  const double marked = Cycles(count, 1);
  printf("{\"cycles\": %ld, \"plain_ns\": %.1f, \"marked_ns\": %.1f}\n", count, plain, marked);
  return 0;
}
