/* SPDX-License-Identifier: MIT
 * record_cost.c: what driver calls cost a program, for record_cost.py: run it plain, then under `cuaudit record`.
 *
 *   asks       cuCtxGetDevice: a call that is only counted
 *   waits      cuEventQuery: a call that changes nothing, without a call stack
 *   events     an event made and destroyed: two calls with call stacks
 *   step       a part of a training step: 50 queries and 50 recordings of an event, one block of memory, and 10 us of the program's own
 * work
 *              for each of these calls, about what PyTorch does between two launches
 *
 * Prints one JSON line: nanoseconds of the processor for each, so that what else the machine does matters less. Usage: record_cost
 * [thousand turns] */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int (*Init)(unsigned);
typedef int (*GetDevice)(int*);
typedef int (*Retain)(void**, int);
typedef int (*SetCurrent)(void*);
typedef int (*EventCreate)(void**, unsigned);
typedef int (*EventCall)(void*);
typedef int (*EventRecord)(void*, void*);
typedef int (*MemAlloc)(unsigned long long*, size_t);
typedef int (*MemFree)(unsigned long long);

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static unsigned turns_of_10_us;
static volatile unsigned sink;

static void Work(void) {
  for (unsigned i = 0; i < turns_of_10_us; ++i) sink = sink * 1664525U + 1013904223U;
}

/* Nobody waits for the recorded event: on a driver that does something it may not be ready. */
static int Fine(int answer) { return answer == 0 || answer == 600; }

static EventCreate event_create;
static EventCall event_destroy;

/* Frames of the program's own, so that a call stack is as deep as in real programs. */
__attribute__((noinline)) static int Deep(int depth) {
  void* event = 0;
  if (depth > 0) return Deep(depth - 1) + (sink == 1);
  return event_create(&event, 0) != 0 || event_destroy(event) != 0;
}

int main(int argc, char** argv) {
  const long turns = (argc > 1 ? atol(argv[1]) : 100) * 1000L;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* context = 0;
  void* event = 0;
  int wrong = 0;
  if (!driver) return 3;
  Init init = (Init)dlsym(driver, "cuInit");
  Retain retain = (Retain)dlsym(driver, "cuDevicePrimaryCtxRetain");
  SetCurrent push = (SetCurrent)dlsym(driver, "cuCtxPushCurrent_v2");
  event_create = (EventCreate)dlsym(driver, "cuEventCreate");
  event_destroy = (EventCall)dlsym(driver, "cuEventDestroy_v2");
  GetDevice ask = (GetDevice)dlsym(driver, "cuCtxGetDevice");
  EventCall query = (EventCall)dlsym(driver, "cuEventQuery");
  EventRecord record = (EventRecord)dlsym(driver, "cuEventRecord");
  MemAlloc allocate = (MemAlloc)dlsym(driver, "cuMemAlloc_v2");
  MemFree release = (MemFree)dlsym(driver, "cuMemFree_v2");
  if (init(0) || retain(&context, 0) || push(context) || event_create(&event, 0)) return 3;
  double start;
  double least = 1e18; /* nanoseconds of a million turns */
  for (int i = 0; i < 20; ++i) {
    turns_of_10_us = 1000000;
    start = Now();
    Work();
    const double took = Now() - start;
    if (took < least) least = took;
  }
  turns_of_10_us = (unsigned)(1e6 * 1e4 / least);

  int device = 0;
  start = Now();
  for (long i = 0; i < turns; ++i) wrong |= ask(&device) != 0;
  const double asks = (Now() - start) / (double)turns;
  start = Now();
  for (long i = 0; i < turns; ++i) wrong |= !Fine(query(event));
  const double waits = (Now() - start) / (double)turns;
  start = Now();
  for (long i = 0; i < turns / 4; ++i) wrong |= Deep(12);
  const double events = (Now() - start) / (double)(turns / 4);
  const long steps = turns / 1000;
  start = Now();
  for (long i = 0; i < steps; ++i) {
    unsigned long long memory = 0;
    wrong |= allocate(&memory, 1 << 20);
    for (int call = 0; call < 50; ++call) {
      wrong |= record(event, 0) != 0;
      Work();
      wrong |= !Fine(query(event));
      Work();
    }
    wrong |= release(memory);
  }
  const double step = (Now() - start) / (double)steps;
  printf("{\"asks\": %.2f, \"waits\": %.2f, \"events\": %.2f, \"step\": %.2f}\n", asks, waits, events, step);
  return wrong;
}
