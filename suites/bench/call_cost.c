/* SPDX-License-Identifier: MIT
 * call_cost.c: what calls and marks cost a program; a definition chooses the program.
 *
 * call_cost: nanoseconds per call of a few cheap driver calls, as this process sees them: run it plain, then under the drop-in.
 * Prints one JSON line. Usage: call_cost [million calls]
 *
 * mark_cost (MARK_COST): what a marked cycle costs a program: nanoseconds of processor time for each of many cycles that do nothing, less
 * those of the same loop without marks. Run it under cuaudit with --no-host, by default, and with --host. Prints one JSON line. Usage:
 * mark_cost [cycles]
 */
#if defined(MARK_COST)
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
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int (*Init)(unsigned);
typedef int (*Retain)(void**, int);
typedef int (*SetCurrent)(void*);
typedef int (*GetCurrent)(void**);
typedef int (*EventCreate)(void**, unsigned);
typedef int (*EventQuery)(void*);

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  const long calls = (argc > 1 ? atol(argv[1]) : 1) * 1000000L;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* context = 0;
  void* event = 0;
  if (!driver) return 3;
  Init init = (Init)dlsym(driver, "cuInit");
  Retain retain = (Retain)dlsym(driver, "cuDevicePrimaryCtxRetain");
  SetCurrent set_current = (SetCurrent)dlsym(driver, "cuCtxSetCurrent");
  GetCurrent get_current = (GetCurrent)dlsym(driver, "cuCtxGetCurrent");
  EventCreate event_create = (EventCreate)dlsym(driver, "cuEventCreate");
  EventQuery event_query = (EventQuery)dlsym(driver, "cuEventQuery");
  if (init(0) || retain(&context, 0) || set_current(context) || event_create(&event, 0)) return 3;
  double start = Now();
  for (long i = 0; i < calls; ++i) get_current(&context);
  const double current_ns = (Now() - start) / (double)calls;
  start = Now();
  for (long i = 0; i < calls; ++i) event_query(event);
  const double query_ns = (Now() - start) / (double)calls;
  printf("{\"cuCtxGetCurrent_ns\": %.2f, \"cuEventQuery_ns\": %.2f}\n", current_ns, query_ns);
  return 0;
}
#endif
