// SPDX-License-Identifier: MIT
// blame.h: what the programs of suites/e2e/blame_test.cc share: a row is a function with one way to lose something, or its repaired twin.
//
// Usage   PROGRAM ROW wrong|right
#ifndef CUAUDIT_E2E_BLAME_H
#define CUAUDIT_E2E_BLAME_H

#include <cuda.h>
#include <stdio.h>
#include <string.h>

extern int wrong;  // 0: the row is its repaired twin

// A row answers 0 when all went well.
typedef struct Row {
  const char *name;
  int (*run)(void);
} Row;

static inline int failed(CUresult result) { return result != CUDA_SUCCESS; }

// A function that stays one at every optimisation level.
#define OUT_OF_LINE __attribute__((noinline))

// Runs a row with the primary context current, and gives the context back whatever comes of it.
static inline int run_row(const Row *rows, int count, int argc, char **argv) {
  CUcontext context = NULL;
  int i, status = 1;
  if (argc != 3) return 2;
  wrong = strcmp(argv[2], "wrong") == 0;
  if (failed(cuInit(0))) return 1;
  if (failed(cuDevicePrimaryCtxRetain(&context, 0))) return 1;
  if (!failed(cuCtxSetCurrent(context))) {
    for (i = 0; i < count; ++i) {
      if (strcmp(rows[i].name, argv[1]) == 0) status = rows[i].run();
    }
    cuCtxSetCurrent(NULL);
  }
  cuDevicePrimaryCtxRelease(0);
  return status;
}

#ifndef __cplusplus
// What the rows in C open in their own ways.
typedef struct Pair {
  CUstream stream;
  CUevent event;
} Pair;

static inline int pair_close(Pair *pair) {
  int bad = failed(cuEventDestroy(pair->event));
  bad |= failed(cuStreamDestroy(pair->stream));
  return bad;
}

// Opens both or neither.
OUT_OF_LINE __attribute__((unused)) static int slot_open(Pair *pair) {
  if (failed(cuStreamCreate(&pair->stream, 0))) return 1;
  if (failed(cuEventCreate(&pair->event, 0))) {
    cuStreamDestroy(pair->stream);
    return 1;
  }
  return 0;
}
#endif

#endif
