// SPDX-License-Identifier: MIT
// blame_pair.h: a stream and an event, which the rows in C open in their own ways.
#ifndef CUAUDIT_E2E_BLAME_PAIR_H
#define CUAUDIT_E2E_BLAME_PAIR_H

#include "blame.h"

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
OUT_OF_LINE static int slot_open(Pair *pair) {
  if (failed(cuStreamCreate(&pair->stream, 0))) return 1;
  if (failed(cuEventCreate(&pair->event, 0))) {
    cuStreamDestroy(pair->stream);
    return 1;
  }
  return 0;
}

#endif
