// SPDX-License-Identifier: MIT
// picture_pool.c: a drain stream made on demand, a single picture, and a pool of pictures: three inits that each take several steps.
//
// Story   The document below has six inits of one shape: a step fails, the error is returned, what the earlier steps made is forgotten.
//           B1  drain stream: the context cannot be popped right after the stream was made; the handle is cleared, the stream stays
//           B2  picture: an event, a record, a plane or the final pop fails; stream, events and planes so far stay
//           B4  pool: slots are filled in a loop that ORs results; slot k fails, earlier slots, slot array and mutex stay. (There, the
//               half-built pool was also handed out and a later close crashed; here nobody closes it, so that the loss can be counted.)
// Source  https://github.com/lusoris/vmaf, docs/adr/0982; written anew from the facts.
// Forms   REPAIRED: every init gives back what it made. Otherwise all three defects.
// Usage   picture_pool [cycles]      default 2; a cycle that fails is reported and the next one begins
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(REPAIRED)
enum { kUnwinds = 1 };
#else
enum { kUnwinds = 0 };
#endif

enum { kWidth = 256, kHeight = 64, kSlots = 3 };

typedef struct Picture {
  CUstream stream;
  CUevent ready, finished;
  CUdeviceptr plane[3];
  size_t pitch[3];
} Picture;

typedef struct Pool {
  pthread_mutex_t busy;
  unsigned next;
  Picture slot[kSlots];
} Pool;

static unsigned char row_on_host[kWidth];

static int report(const char *what, CUresult result) {
  const char *name = NULL;
  if (result == CUDA_SUCCESS) return 0;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "no name";
  fprintf(stderr, "picture_pool: %s: %s (%d)\n", what, name, (int)result);
  return -1;
}

// Twice: without the context current, nothing that lives in it can be released.
static CUresult enter(CUcontext context) {
  CUresult result = cuCtxPushCurrent(context);
  if (result != CUDA_SUCCESS) result = cuCtxPushCurrent(context);
  return result;
}

static CUresult leave(void) {
  CUcontext popped;
  return cuCtxPopCurrent(&popped);
}

static void drain_free(CUcontext context, CUstream *stream) {
  int entered;
  if (*stream == NULL) return;
  entered = report("enter", enter(context)) == 0;
  report("drain synchronize", cuStreamSynchronize(*stream));
  report("drain destroy", cuStreamDestroy(*stream));
  if (entered) report("leave", leave());
  *stream = NULL;
}

static CUresult drain_stream_ensure(CUcontext context, CUstream *stream) {
  CUresult left, result;
  if (*stream != NULL) return CUDA_SUCCESS;
  result = cuCtxPushCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  result = cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) *stream = NULL;
  left = leave();
  if (result != CUDA_SUCCESS || left == CUDA_SUCCESS) return result;
  if (kUnwinds) drain_free(context, stream);
  *stream = NULL;
  return left;
}

static void picture_free(CUcontext context, Picture *picture) {
  const int entered = report("enter", enter(context)) == 0;
  if (picture->stream != NULL) report("picture synchronize", cuStreamSynchronize(picture->stream));
  if (picture->plane[2] != 0) report("plane free", cuMemFree(picture->plane[2]));
  if (picture->plane[1] != 0) report("plane free", cuMemFree(picture->plane[1]));
  if (picture->plane[0] != 0) report("plane free", cuMemFree(picture->plane[0]));
  if (picture->finished != NULL) report("event destroy", cuEventDestroy(picture->finished));
  if (picture->ready != NULL) report("event destroy", cuEventDestroy(picture->ready));
  if (picture->stream != NULL) report("stream destroy", cuStreamDestroy(picture->stream));
  if (entered) report("leave", leave());
}

// A call that fails may have written anything to its output; nobody may take that for a handle.
#define STEP(call, output)        \
  do {                            \
    const CUresult step = (call); \
    if (step != CUDA_SUCCESS) {   \
      (output) = 0;               \
      return step;                \
    }                             \
  } while (0)

// With the context current. One statement a step, so that each step is a call site of its own.
static CUresult picture_steps(Picture *picture) {
  CUresult result;
  STEP(cuStreamCreate(&picture->stream, CU_STREAM_NON_BLOCKING), picture->stream);
  STEP(cuEventCreate(&picture->ready, CU_EVENT_DISABLE_TIMING), picture->ready);
  STEP(cuEventCreate(&picture->finished, CU_EVENT_DISABLE_TIMING), picture->finished);
  result = cuEventRecord(picture->finished, picture->stream);
  if (result != CUDA_SUCCESS) return result;
  STEP(cuMemAllocPitch(&picture->plane[0], &picture->pitch[0], kWidth, kHeight, 4), picture->plane[0]);
  STEP(cuMemAllocPitch(&picture->plane[1], &picture->pitch[1], kWidth / 2, kHeight / 2, 4), picture->plane[1]);
  STEP(cuMemAllocPitch(&picture->plane[2], &picture->pitch[2], kWidth / 2, kHeight / 2, 4), picture->plane[2]);
  return CUDA_SUCCESS;
}

static CUresult picture_alloc(CUcontext context, Picture *out) {
  Picture picture;
  CUresult left, result = cuCtxPushCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  memset(&picture, 0, sizeof picture);
  result = picture_steps(&picture);
  left = leave();
  if (result == CUDA_SUCCESS) result = left;
  if (result == CUDA_SUCCESS) {
    *out = picture;
  } else if (kUnwinds) {
    picture_free(context, &picture);
  }
  return result;
}

static CUresult pool_init(CUcontext context, Pool **out) {
  unsigned i, result = 0;
  Pool *pool = calloc(1, sizeof *pool);
  if (pool == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_init(&pool->busy, NULL);
  for (i = 0; i < kSlots && result == 0; ++i) result |= (unsigned)picture_alloc(context, &pool->slot[i]);
  if (result != 0 && kUnwinds) {
    while (--i > 0) picture_free(context, &pool->slot[i - 1]);
    pthread_mutex_destroy(&pool->busy);
    free(pool);
    pool = NULL;
  }
  *out = pool;
  return (CUresult)result;
}

static void pool_close(CUcontext context, Pool *pool) {
  unsigned i;
  for (i = kSlots; i > 0; --i) picture_free(context, &pool->slot[i - 1]);
  pthread_mutex_destroy(&pool->busy);
  free(pool);
}

static CUresult picture_use(CUcontext context, CUstream drain, const Picture *picture) {
  CUresult left, result = cuCtxPushCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemcpyHtoDAsync(picture->plane[0], row_on_host, kWidth, picture->stream);
  if (result == CUDA_SUCCESS) result = cuMemsetD8Async(picture->plane[1], 128, kWidth / 2, picture->stream);
  if (result == CUDA_SUCCESS) result = cuEventRecord(picture->ready, picture->stream);
  if (result == CUDA_SUCCESS) result = cuStreamWaitEvent(drain, picture->ready, 0);
  if (result == CUDA_SUCCESS) result = cuEventRecord(picture->finished, drain);
  if (result == CUDA_SUCCESS) result = cuEventSynchronize(picture->finished);
  left = leave();
  return result != CUDA_SUCCESS ? result : left;
}

static CUresult pool_use(CUcontext context, CUstream drain, Pool *pool) {
  CUresult result = CUDA_SUCCESS;
  int i;
  for (i = 0; i < kSlots + 1 && result == CUDA_SUCCESS; ++i) {
    const Picture *picture;
    pthread_mutex_lock(&pool->busy);
    picture = &pool->slot[pool->next];
    pool->next = (pool->next + 1) % kSlots;
    pthread_mutex_unlock(&pool->busy);
    result = picture_use(context, drain, picture);
  }
  return result;
}

static int run_pool(CUcontext context, CUstream drain) {
  Pool *pool = NULL;
  CUresult result = pool_init(context, &pool);
  if (result != CUDA_SUCCESS) return report("pool init", result);
  result = pool_use(context, drain, pool);
  pool_close(context, pool);
  return report("pool use", result);
}

static int run_in_context(CUcontext context) {
  CUstream drain = NULL;
  Picture picture;
  int failed = report("drain stream", drain_stream_ensure(context, &drain));
  if (failed != 0) return failed;
  failed = report("picture alloc", picture_alloc(context, &picture));
  if (failed == 0) {
    failed = report("picture use", picture_use(context, drain, &picture));
    if (failed == 0) failed = run_pool(context, drain);
    picture_free(context, &picture);
  }
  drain_free(context, &drain);
  return failed;
}

static int run_cycle(void) {
  CUcontext context;
  CUdevice device;
  int failed;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
  if (result != CUDA_SUCCESS) return report("init", result);
  failed = run_in_context(context);
  report("context release", cuDevicePrimaryCtxRelease(device));
  return failed;
}

int main(int argc, char **argv) {
  const long cycles = argc > 1 ? strtol(argv[1], NULL, 10) : 2;
  long i, failures = 0;
  for (i = 0; i < cycles; ++i) {
    if (run_cycle() == 0) continue;
    fprintf(stderr, "picture_pool: cycle %ld failed\n", i + 1);
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
