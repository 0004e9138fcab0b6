// SPDX-License-Identifier: MIT
// settings.c: an application whose library changes a setting of the application's context, device or thread while it works, and puts it
// back. Usage   settings STORY [CYCLES]
//   limit      the stack of a kernel: raised for the work; limit_left: stays raised when the work fails
//   threshold  what the default memory pool keeps: all of it during the work; threshold_left: for good when the work fails
//   mode       the capture mode of the thread: relaxed for the work; mode_left: stays relaxed when the work fails
//   context    the current context: the library works in the primary one; context_left: that stays current when the work fails
//   full       as threshold, on a device that has no room for the large way of working: each cycle fails once by itself and goes on with the
//              small one; full_left: the large way leaves the threshold
#include <cuaudit/mark.h>
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

enum { kBytes = 4096 };
static const size_t kTooMuch = (size_t)1 << 50;

static CUcontext own;  // that the library works in; null: in the application's

static int failed(CUresult result) { return result != CUDA_SUCCESS; }

static int make_context(CUcontext *made) {
#if CUDA_VERSION >= 13000
  return failed(cuCtxCreate(made, NULL, 0, 0));
#else
  return failed(cuCtxCreate(made, 0, 0));
#endif
}

static int work(size_t bytes) {
  CUdeviceptr memory = 0;
  if (failed(cuMemAlloc(&memory, bytes))) return 1;
  const int bad = failed(cuMemsetD8(memory, 0, kBytes));
  return bad | failed(cuMemFree(memory));
}

static int with_deep_stack(int leaves) {
  size_t former = 0;
  if (failed(cuCtxGetLimit(&former, CU_LIMIT_STACK_SIZE)) || failed(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192))) return 1;
  const int bad = work(kBytes);
  if (bad && leaves) return 1;
  return bad | failed(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, former));
}

static int with_full_pool(size_t bytes, int leaves) {
  CUmemoryPool pool = NULL;
  cuuint64_t former = 0, all = ~(cuuint64_t)0;
  if (failed(cuDeviceGetDefaultMemPool(&pool, 0))) return 1;
  if (failed(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &former))) return 1;
  if (failed(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all))) return 1;
  const int bad = work(bytes);
  if (bad && leaves) return 1;
  return bad | failed(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &former));
}

static int with_relaxed_captures(int leaves) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (failed(cuThreadExchangeStreamCaptureMode(&mode))) return 1;
  const int bad = work(kBytes);
  if (bad && leaves) return 1;
  return bad | failed(cuThreadExchangeStreamCaptureMode(&mode));
}

static int with_own_context(int leaves) {
  CUcontext former = NULL;
  if (failed(cuCtxGetCurrent(&former)) || failed(cuCtxSetCurrent(own))) return 1;
  const int bad = work(kBytes);
  if (bad && leaves) return 1;
  return bad | failed(cuCtxSetCurrent(former));
}

static int library(const char *story, int leaves) {
  if (own != NULL) return with_own_context(leaves);
  if (strncmp(story, "limit", 5) == 0) return with_deep_stack(leaves);
  if (strncmp(story, "threshold", 9) == 0) return with_full_pool(kBytes, leaves);
  if (strncmp(story, "mode", 4) == 0) return with_relaxed_captures(leaves);
  return with_full_pool(kTooMuch, leaves) != 0 ? work(kBytes) : 0;
}

// What the application does in the same context, whatever became of the library's work.
static int application(void) {
  CUdeviceptr memory = 0;
  if (failed(cuMemAllocAsync(&memory, kBytes, NULL))) return 1;
  return failed(cuMemFreeAsync(memory, NULL)) | failed(cuCtxSynchronize());
}

int main(int argc, char **argv) {
  const char *story = argc > 1 ? argv[1] : "";
  const int leaves = strstr(story, "_left") != NULL;
  int cycles = argc > 2 ? atoi(argv[2]) : 1;
  CUcontext primary = NULL, made = NULL;
  if (failed(cuInit(0)) || failed(cuDevicePrimaryCtxRetain(&primary, 0))) return 1;
  if (strncmp(story, "context", 7) == 0) own = primary;
  int bad = own != NULL ? make_context(&made) : failed(cuCtxSetCurrent(primary));
  for (; cycles > 0 && !bad; --cycles) {
    cuaudit_cycle_begin();
    bad |= library(story, leaves);
    bad |= application();
    cuaudit_cycle_end();
  }
  if (made != NULL) bad |= failed(cuCtxDestroy(made));
  return bad | failed(cuDevicePrimaryCtxRelease(0));
}
