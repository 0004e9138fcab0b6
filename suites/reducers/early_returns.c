// SPDX-License-Identifier: MIT
// early_returns.c: five small lifecycles that return too early: after the step that failed, before the ones that give back.
//
// Story   Of the findings of the documents below, those of the shape "return the error, forget what there is".
//           B3  state release: the pop or the release of the primary context fails, and the table of functions is never freed. The first
//               repair freed it and so made stream and context unreachable; the later policy keeps the handles and lets the caller try
//               again. Both are here: the caller of the repaired form calls twice
//           B5  an entry is published before its queue is made; when that fails the entry stays, and the next use goes through null
//           B6  an exception leaves submit or wait while a host buffer is mapped and an image is allocated (longjmp stands for it)
//           B7  both ways to open: the pop right after the stream was created fails, the stream stays
//           B8  kernel lifecycle: an event or the pop fails; stream and events so far stay
//           B11 pinned buffer: what it needs beside it fails, the buffer stays
// Source  https://github.com/lusoris/vmaf, docs/adr/0960, 0982 and 1336; written anew from the facts.
// Forms   REPAIRED: every step gives back what the ones before it made. Otherwise all defects.
// Usage   early_returns [cycles]      default 2; a cycle that fails is reported and the next one begins
#include <cuda.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(REPAIRED)
enum { kUnwinds = 1 };
#else
enum { kUnwinds = 0 };
#endif

enum { kBytes = 4096, kEntries = 4 };

static int report(const char *what, CUresult result) {
  const char *name = NULL;
  if (result == CUDA_SUCCESS) return 0;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "no name";
  fprintf(stderr, "early_returns: %s: %s (%d)\n", what, name, (int)result);
  return -1;
}

static CUresult leave(void) {
  CUcontext popped;
  return cuCtxPopCurrent(&popped);
}

// Twice, for what can only be released while the context is current.
static CUresult enter(CUcontext context) {
  CUresult result = cuCtxPushCurrent(context);
  if (result != CUDA_SUCCESS) result = cuCtxPushCurrent(context);
  return result;
}

// B3. A state owns a reference of the primary context, a stream, and the table by which it calls the driver.
typedef struct State {
  void *table;
  CUdevice device;
  CUcontext context;
  CUstream stream;
} State;

static CUresult state_open(State *state) {
  CUresult result;
  memset(state, 0, sizeof *state);
  state->table = malloc(752);
  if (state->table == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  result = cuDevicePrimaryCtxRetain(&state->context, state->device);
  if (result != CUDA_SUCCESS) state->context = NULL;
  if (result == CUDA_SUCCESS) result = cuCtxPushCurrent(state->context);
  if (result == CUDA_SUCCESS) {
    CUresult left;
    result = cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) state->stream = NULL;
    left = leave();
    if (result == CUDA_SUCCESS) result = left;
  }
  return result;
}

// What is gone is nulled, so that a second call goes on where the first one stopped.
static CUresult state_release(State *state) {
  CUresult result = CUDA_SUCCESS;
  if (state->stream != NULL) {
    CUresult left;
    result = enter(state->context);
    if (result != CUDA_SUCCESS) return result;
    result = cuStreamDestroy(state->stream);
    if (result == CUDA_SUCCESS) state->stream = NULL;
    left = leave();
    if (left != CUDA_SUCCESS) return left;
    if (result != CUDA_SUCCESS) return result;
  }
  if (state->context != NULL) {
    result = cuDevicePrimaryCtxRelease(state->device);
    if (result != CUDA_SUCCESS) return result;
    state->context = NULL;
  }
  free(state->table);
  state->table = NULL;
  return CUDA_SUCCESS;
}

static int run_state(void) {
  State state;
  int failed = report("state open", state_open(&state));
  CUresult result = state_release(&state);
  failed |= report("state release", result);
  // The caller's part of the policy: once more, and then it gives up on what cannot be given back, and on nothing else. A stream can be
  // destroyed without its context being current.
  if (kUnwinds && result != CUDA_SUCCESS && report("state release, again", state_release(&state)) != 0) {
    if (state.stream != NULL) report("stream destroy, at last", cuStreamDestroy(state.stream));
    if (state.context != NULL) report("context release, at last", cuDevicePrimaryCtxRelease(state.device));
    free(state.table);
  }
  return failed;
}

// B5. A registry of entries; each has a queue.
typedef struct Entry {
  CUstream *queue;
} Entry;
static Entry *registry[kEntries];
static unsigned registered;
static CUstream queues[kEntries];

static CUresult entry_register(Entry *entry) {
  CUresult result;
  entry->queue = NULL;
  if (!kUnwinds) registry[registered++] = entry;
  result = cuStreamCreate(&queues[0], CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  entry->queue = &queues[0];
  if (kUnwinds) registry[registered++] = entry;
  return CUDA_SUCCESS;
}

static CUresult registry_flush(void) {
  CUresult result = CUDA_SUCCESS;
  while (registered > 0) {
    CUstream *volatile const queue = registry[--registered]->queue;
    const CUresult destroyed = cuStreamDestroy(*queue);
    if (result == CUDA_SUCCESS) result = destroyed;
  }
  return result;
}

static int run_registry(void) {
  static Entry entry;
  int failed = report("register", entry_register(&entry));
  failed |= report("flush", registry_flush());
  return failed;
}

// B6. An image on the device, filled through a host buffer that is mapped meanwhile.
static jmp_buf escaped;

static void submit(CUdeviceptr image, const void *buffer, CUstream stream) {
  const CUresult result = cuMemcpyHtoDAsync(image, buffer, kBytes, stream);
  if (result != CUDA_SUCCESS) longjmp(escaped, (int)result);
}

static void await(CUstream stream) {
  const CUresult result = cuStreamSynchronize(stream);
  if (result != CUDA_SUCCESS) longjmp(escaped, (int)result);
}

static int import_surface(CUstream stream) {
  void *buffer = NULL;
  CUdeviceptr image = 0;
  int thrown, failed = report("map", cuMemHostAlloc(&buffer, kBytes, CU_MEMHOSTALLOC_DEVICEMAP));
  if (failed != 0) return failed;
  failed = report("image", cuMemAlloc(&image, kBytes));
  if (failed != 0) {
    report("unmap", cuMemFreeHost(buffer));
    return failed;
  }
  memset(buffer, 0, kBytes);
  thrown = setjmp(escaped);
  if (thrown == 0) {
    submit(image, buffer, stream);
    await(stream);
  } else if (!kUnwinds) {
    return report("import", (CUresult)thrown);
  }
  report("image free", cuMemFree(image));
  report("unmap", cuMemFreeHost(buffer));
  return report("import", (CUresult)thrown);
}

// B7. Two ways to open, one mistake.
static CUresult open_plain(CUcontext context, CUstream *stream) {
  CUresult left, result = cuCtxPushCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  result = cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) *stream = NULL;
  left = leave();
  if (left != CUDA_SUCCESS && kUnwinds && *stream != NULL) report("unwind stream", cuStreamDestroy(*stream));
  if (left != CUDA_SUCCESS) *stream = NULL;
  return result != CUDA_SUCCESS ? result : left;
}

static CUresult open_with_priority(CUcontext context, CUstream *stream) {
  CUresult left, result = cuCtxPushCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  result = cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0);
  if (result != CUDA_SUCCESS) *stream = NULL;
  left = leave();
  if (left != CUDA_SUCCESS && kUnwinds && *stream != NULL) report("unwind stream", cuStreamDestroy(*stream));
  if (left != CUDA_SUCCESS) *stream = NULL;
  return result != CUDA_SUCCESS ? result : left;
}

static int run_open(CUcontext context) {
  CUstream plain = NULL, first = NULL;
  int failed = report("open", open_plain(context, &plain));
  failed |= report("open with priority", open_with_priority(context, &first));
  if (plain != NULL) report("close", cuStreamDestroy(plain));
  if (first != NULL) report("close", cuStreamDestroy(first));
  return failed;
}

// B8. A kernel's stream and the two events between which it runs.
typedef struct Kernel {
  CUstream stream;
  CUevent begin, end;
} Kernel;

static void kernel_close(Kernel *kernel) {
  if (kernel->end != NULL) report("event destroy", cuEventDestroy(kernel->end));
  if (kernel->begin != NULL) report("event destroy", cuEventDestroy(kernel->begin));
  if (kernel->stream != NULL) report("stream destroy", cuStreamDestroy(kernel->stream));
}

#define STEP(call, output)        \
  do {                            \
    const CUresult step = (call); \
    if (step != CUDA_SUCCESS) {   \
      (output) = NULL;            \
      return step;                \
    }                             \
  } while (0)

static CUresult kernel_steps(Kernel *kernel) {
  STEP(cuStreamCreate(&kernel->stream, CU_STREAM_NON_BLOCKING), kernel->stream);
  STEP(cuEventCreate(&kernel->begin, CU_EVENT_DISABLE_TIMING), kernel->begin);
  STEP(cuEventCreate(&kernel->end, CU_EVENT_DISABLE_TIMING), kernel->end);
  return CUDA_SUCCESS;
}

static CUresult kernel_open(CUcontext context, Kernel *kernel) {
  CUresult left, result = cuCtxPushCurrent(context);
  memset(kernel, 0, sizeof *kernel);
  if (result != CUDA_SUCCESS) return result;
  result = kernel_steps(kernel);
  left = leave();
  if (result == CUDA_SUCCESS) result = left;
  if (result == CUDA_SUCCESS) return result;
  if (kUnwinds) kernel_close(kernel);
  memset(kernel, 0, sizeof *kernel);
  return result;
}

static int run_kernel(CUcontext context) {
  Kernel kernel;
  const int failed = report("kernel open", kernel_open(context, &kernel));
  kernel_close(&kernel);
  return failed;
}

// B11. A pinned buffer and the event that says when it is free again.
static CUresult pinned_alloc(void **buffer, CUevent *free_again) {
  CUresult result = cuMemHostAlloc(buffer, kBytes, 0);
  if (result != CUDA_SUCCESS) {
    *buffer = NULL;
    return result;
  }
  result = cuEventCreate(free_again, CU_EVENT_DISABLE_TIMING);
  if (result == CUDA_SUCCESS) return result;
  if (kUnwinds) report("unwind pinned", cuMemFreeHost(*buffer));
  *buffer = NULL;
  return result;
}

static int run_pinned(void) {
  void *buffer = NULL;
  CUevent free_again;
  const int failed = report("pinned", pinned_alloc(&buffer, &free_again));
  if (failed != 0) return failed;
  report("event destroy", cuEventDestroy(free_again));
  report("pinned free", cuMemFreeHost(buffer));
  return 0;
}

static int run_in_context(CUcontext context) {
  CUstream stream = NULL;
  int failed = run_registry();
  failed |= run_open(context);
  failed |= run_kernel(context);
  failed |= run_pinned();
  if (report("stream", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) != 0) return -1;
  failed |= import_surface(stream);
  report("stream destroy", cuStreamDestroy(stream));
  return failed;
}

static int run_cycle(void) {
  CUcontext context;
  CUdevice device;
  int failed;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, 0);
  if (result != CUDA_SUCCESS) return report("init", result);
  failed = run_state();
  result = cuDevicePrimaryCtxRetain(&context, device);
  if (result != CUDA_SUCCESS) return report("context", result);
  result = cuCtxPushCurrent(context);
  if (result == CUDA_SUCCESS) {
    failed |= run_in_context(context);
    report("leave", leave());
  } else {
    failed = report("enter", result);
  }
  report("context release", cuDevicePrimaryCtxRelease(device));
  return failed;
}

int main(int argc, char **argv) {
  const long cycles = argc > 1 ? strtol(argv[1], NULL, 10) : 2;
  long i, failures = 0;
  for (i = 0; i < cycles; ++i) {
    if (run_cycle() == 0) continue;
    fprintf(stderr, "early_returns: cycle %ld failed\n", i + 1);
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
