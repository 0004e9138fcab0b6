// SPDX-License-Identifier: MIT
// blame_ways.c: ways of losing something in C on which calls are not plain calls; each with a repaired twin. See blame.h.
#include <setjmp.h>
#include <stdlib.h>

#include "blame.h"

int wrong;

// callback: called by the C library; what it acquires it must give back itself.
static int visited_badly;
static int visit(const void *a, const void *b) {
  Pair pair;
  (void)a;
  (void)b;
  if (visited_badly || failed(cuStreamCreate(&pair.stream, 0))) {
    visited_badly = 1;
    return 0;
  }
  if (failed(cuEventCreate(&pair.event, 0))) {
    visited_badly = 1;
    if (!wrong) cuStreamDestroy(pair.stream);
    return 0;
  }
  visited_badly |= pair_close(&pair);
  return 0;
}
static int callback(void) {
  int numbers[2] = {2, 1};
  visited_badly = 0;
  qsort(numbers, 2, sizeof(numbers[0]), &visit);
  return visited_badly;
}

// callback_around: the callback acquires for the function that walks.
static CUstream found;
static int find(const void *key, const void *element) {
  (void)key;
  (void)element;
  if (found == NULL && failed(cuStreamCreate(&found, 0))) found = NULL;
  return 0;
}
static int walk(void) {
  int numbers[1] = {1}, bad;
  CUevent event;
  found = NULL;
  const void *const seen = bsearch(numbers, numbers, 1, sizeof(numbers[0]), &find);
  if (seen == NULL || found == NULL) return 1;
  if (failed(cuEventCreate(&event, 0))) {
    if (!wrong) cuStreamDestroy(found);
    return 1;
  }
  bad = failed(cuEventDestroy(event));
  return bad | failed(cuStreamDestroy(found));
}
static int callback_around(void) { return walk(); }

// table: functions behind pointers; the caller of the table forgets to close.
typedef struct Backend {
  int (*open)(Pair *);
  int (*start)(Pair *);
  int (*close)(Pair *);
} Backend;
static int device_open(Pair *pair) { return failed(cuStreamCreate(&pair->stream, 0)); }
static int device_start(Pair *pair) {
  if (failed(cuEventCreate(&pair->event, 0))) return 1;
  if (failed(cuEventRecord(pair->event, pair->stream))) {
    cuEventDestroy(pair->event);
    return 1;
  }
  return failed(cuEventDestroy(pair->event)) ? 1 : 0;
}
static int device_close(Pair *pair) {
  int bad = failed(cuStreamDestroy(pair->stream));
  return bad;
}
static const Backend kBackends[] = {{&device_open, &device_start, &device_close}};
static int backend_run(const Backend *volatile backend) {
  Pair pair;
  if (backend->open(&pair)) return 1;
  if (backend->start(&pair)) {
    if (!wrong) backend->close(&pair);
    return 1;
  }
  return backend->close(&pair) ? 1 : 0;
}
static int table(void) { return backend_run(&kBackends[0]); }

// recursion: a level that fails keeps its own object.
static int level(int depth) {
  CUdeviceptr memory;
  int bad;
  if (depth == 0) return 0;
  if (failed(cuMemAlloc(&memory, 256))) return 1;
  bad = level(depth - 1);
  if (bad && wrong) return 1;
  return bad | failed(cuMemFree(memory));
}
static int recursion(void) { return level(3); }

// retry: the second attempt overwrites the handle of the first.
static int retry_open(Pair *pair) {
  int attempt;
  for (attempt = 0; attempt < 2; ++attempt) {
    if (failed(cuStreamCreate(&pair->stream, 0))) continue;
    if (!failed(cuEventCreate(&pair->event, 0))) return 0;
    if (!wrong || attempt == 1) cuStreamDestroy(pair->stream);
  }
  return 1;
}
static int retry(void) {
  Pair pair;
  if (retry_open(&pair)) return 1;
  return pair_close(&pair);
}

// tail_open: the function that acquires ends with the call that fails.
OUT_OF_LINE static int tail_start(Pair *pair) {
  if (failed(cuEventCreate(&pair->event, 0))) {
    if (!wrong) cuStreamDestroy(pair->stream);
    return 1;
  }
  return 0;
}
OUT_OF_LINE static int tail_begin(Pair *pair) {
  if (failed(cuStreamCreate(&pair->stream, 0))) return 1;
  return tail_start(pair);
}
static int tail_open(void) {
  Pair pair;
  if (tail_begin(&pair)) return 1;
  return pair_close(&pair);
}

// tail_close: a tear-down that ends with the release that it does not come to.
OUT_OF_LINE static CUresult tail_end(Pair *pair) {
  CUresult result = cuEventDestroy(pair->event);
  if (failed(result) && wrong) return result;
  return cuStreamDestroy(pair->stream);
}
static int tail_close(void) {
  Pair pair;
  if (slot_open(&pair)) return 1;
  return failed(tail_end(&pair)) ? 1 : 0;
}

// long_jump: an error handler leaves the functions in between.
static jmp_buf handler;
static void must(CUresult result) {
  if (failed(result)) longjmp(handler, 1);
}
static CUstream jump_stream;
static int jump_work(void) {
  CUevent event;
  must(cuEventCreate(&event, 0));
  return failed(cuEventDestroy(event)) ? 1 : 0;
}
static int jump_run(void) {
  volatile int bad = 1;
  if (failed(cuStreamCreate(&jump_stream, 0))) return 1;
  if (setjmp(handler) == 0) {
    bad = jump_work();
  } else if (wrong) {
    return 1;
  }
  return bad | failed(cuStreamDestroy(jump_stream));
}
static int long_jump(void) { return jump_run(); }

static const Row kRows[] = {
    {"callback", &callback},     {"callback_around", &callback_around},
    {"table", &table},           {"recursion", &recursion},
    {"retry", &retry},           {"tail_open", &tail_open},
    {"tail_close", &tail_close}, {"long_jump", &long_jump},
};

int main(int argc, char **argv) { return run_row(kRows, (int)(sizeof(kRows) / sizeof(kRows[0])), argc, argv); }
