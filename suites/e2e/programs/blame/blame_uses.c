// SPDX-License-Identifier: MIT
// blame_uses.c: a program over two libraries: what is lost inside of them, and failures that they remember. See blame.h. With LIBRARY it is
// such a library, built several times; LIBRARY is the first part of its names.
#ifdef LIBRARY
#include <cuda.h>

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define OUT_OF_LINE __attribute__((noinline))

static CUstream stream;
static CUevent event;
static CUdeviceptr memory;

// Ten calls that can fail, in four functions. Whichever fails, everything is given back, and the library never starts again.
OUT_OF_LINE static int queue_open(void) {
  if (cuStreamCreate(&stream, 0) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) {
    cuStreamDestroy(stream);
    return 1;
  }
  return 0;
}
OUT_OF_LINE static int memory_open(void) {
  int device = 0, value = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return 1;
  if (cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device) != CUDA_SUCCESS) return 1;
  return cuMemAlloc(&memory, 4096) != CUDA_SUCCESS;
}
OUT_OF_LINE static int first_work(void) {
  if (cuMemsetD8Async(memory, 0, 4096, stream) != CUDA_SUCCESS) return 1;
  if (cuEventRecord(event, stream) != CUDA_SUCCESS) return 1;
  return cuEventSynchronize(event) != CUDA_SUCCESS;
}
OUT_OF_LINE static int last_work(void) {
  if (cuMemsetD8Async(memory, 1, 4096, stream) != CUDA_SUCCESS) return 1;
  return cuStreamSynchronize(stream) != CUDA_SUCCESS;
}
static void queue_close(void) {
  cuEventDestroy(event);
  cuStreamDestroy(stream);
}
static int start(void) {
  if (queue_open() != 0) return 1;
  if (memory_open() != 0) {
    queue_close();
    return 1;
  }
  if (first_work() != 0 || last_work() != 0) {
    cuMemFree(memory);
    queue_close();
    return 1;
  }
  return 0;
}
static int has_failed;
int JOINED(LIBRARY, _init)(int retries) {
  if (has_failed && !retries) return 1;
  has_failed = start();
  return has_failed;
}
void JOINED(LIBRARY, _done)(void) {
  cuMemFree(memory);
  queue_close();
}

// Loses a stream in a function that has no name once the library is stripped.
OUT_OF_LINE static int lose_inside(int wrong) {
  CUstream lost;
  CUevent second;
  if (cuStreamCreate(&lost, 0) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&second, 0) != CUDA_SUCCESS) {
    if (!wrong) cuStreamDestroy(lost);
    return 1;
  }
  cuEventDestroy(second);
  cuStreamDestroy(lost);
  return 0;
}
OUT_OF_LINE static int pass_on(int wrong) { return lose_inside(wrong) + 0; }
int JOINED(LIBRARY, _lose)(int wrong) { return pass_on(wrong) != 0 ? 1 : 0; }

// The same in a function that exists only inside of the one that others can call.
__attribute__((always_inline)) static inline int inlined_lose(int wrong) {
  CUdeviceptr lost;
  CUevent second;
  if (cuMemAlloc(&lost, 256) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&second, 0) != CUDA_SUCCESS) {
    if (!wrong) cuMemFree(lost);
    return 1;
  }
  cuEventDestroy(second);
  cuMemFree(lost);
  return 0;
}
int JOINED(LIBRARY, _lose_inlined)(int wrong) { return inlined_lose(wrong); }

#else
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

#endif
