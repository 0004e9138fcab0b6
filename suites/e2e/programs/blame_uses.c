// SPDX-License-Identifier: MIT
// blame_uses.c: a program over two libraries (blame_library.c): what is lost inside of them, and failures that they remember. See blame.h.
#include <cuaudit/mark.h>

#include "blame.h"

int wrong;

int north_init(int retries);
void north_done(void);
int north_lose(int wrong);
int north_lose_inlined(int wrong);
int south_init(int retries);
void south_done(void);

static int stripped(void) { return north_lose(wrong) ? 1 : 0; }
static int stripped_inlined(void) { return north_lose_inlined(wrong) ? 1 : 0; }

// Three cycles of what answers 1 when it failed. The reports are what a clean cycle is judged by.
static int cycles(int (*work)(void)) {
  int i, bad = 0;
  for (i = 0; i < 3; ++i) {
    int failed_now;
    cuaudit_cycle_begin();
    failed_now = work();
    cuaudit_report(failed_now ? -1 : 0);
    cuaudit_cycle_end();
    bad |= failed_now;
  }
  return bad;
}

static int use_north(void) {
  if (north_init(!wrong)) return 1;
  north_done();
  return 0;
}
static int use_both(void) {
  int bad = 0;
  if (north_init(!wrong)) {
    bad = 1;
  } else {
    north_done();
  }
  if (south_init(!wrong)) {
    bad = 1;
  } else {
    south_done();
  }
  return bad;
}
static int one_library(void) { return cycles(&use_north); }
static int two_libraries(void) { return cycles(&use_both); }

// two_functions: the program's own functions, each of which remembers that it failed.
static int first_failed, second_failed;
static int first_begin(void) {
  CUevent event;
  if (first_failed && wrong) return 1;
  first_failed = failed(cuEventCreate(&event, 0));
  if (first_failed) return 1;
  first_failed = failed(cuEventRecord(event, NULL));
  if (failed(cuEventDestroy(event))) return 1;
  return first_failed;
}
static int second_begin(void) {
  CUdeviceptr memory;
  if (second_failed && wrong) return 1;
  second_failed = failed(cuMemAlloc(&memory, 256));
  if (second_failed) return 1;
  second_failed = failed(cuMemsetD8(memory, 0, 256));
  if (failed(cuMemFree(memory))) return 1;
  return second_failed;
}
static int begin_both(void) {
  int bad = first_begin();
  return bad | second_begin();
}
static int two_functions(void) { return cycles(&begin_both); }

static const Row kRows[] = {
    {"stripped", &stripped},           {"stripped_inlined", &stripped_inlined}, {"one_library", &one_library},
    {"two_libraries", &two_libraries}, {"two_functions", &two_functions},
};

int main(int argc, char **argv) { return run_row(kRows, (int)(sizeof(kRows) / sizeof(kRows[0])), argc, argv); }
