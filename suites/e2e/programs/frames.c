// SPDX-License-Identifier: MIT
// frames.c: a library that works on frame after frame, as video filters do, and closes in one place whatever failed.
// Usage   frames MODE [frames]      default 48
//   sound    nothing wrong
//   gives_up     on the way back, a plane whose release is refused keeps the events and the stream from being released
//   later        the same, but only when a frame of the second half failed: data that is in no call stack and in no ledger
//   two_kinds    the scratch of odd frames is of another make; when its release is refused on the way back, the events and the stream are
//                lost. Calls and places are the same for both kinds
//
// A cycle makes 7 calls for each frame and 40 around them. So most first faults have the same way back, of 17 calls.
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

enum { kPlanes = 12, kEvents = 2 };

struct library {
  CUstream stream;
  CUevent event[kEvents];
  CUdeviceptr plane[kPlanes], scratch;
};

static const char *mode = "";
static int odd, later;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static CUresult make_small(CUdeviceptr *scratch) { return cuMemAlloc(scratch, 512); }
static CUresult make_large(CUdeviceptr *scratch) { return cuMemAlloc(scratch, 65536); }

static CUresult open_library(struct library *one) {
  CUresult result = cuStreamCreate(&one->stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) one->stream = NULL;
  for (int i = 0; i < kEvents && result == CUDA_SUCCESS; ++i) {
    result = cuEventCreate(&one->event[i], 0);
    if (result != CUDA_SUCCESS) one->event[i] = NULL;
  }
  for (int i = 0; i < kPlanes && result == CUDA_SUCCESS; ++i) {
    result = cuMemAlloc(&one->plane[i], 4096);
    if (result != CUDA_SUCCESS) one->plane[i] = 0;
  }
  return result;
}

static CUresult close_library(struct library *one, int failed) {
  CUresult result = CUDA_SUCCESS, back;
  int stop = 0;
  if (one->stream != NULL) result = cuStreamSynchronize(one->stream);
  if (one->scratch != 0) {
    back = cuMemFree(one->scratch);
    if (back != CUDA_SUCCESS && failed && odd && is("two_kinds")) stop = 1;
    if (result == CUDA_SUCCESS) result = back;
  }
  for (int i = 0; i < kPlanes; ++i) {
    if (one->plane[i] == 0) continue;
    back = cuMemFree(one->plane[i]);
    if (back != CUDA_SUCCESS && failed && (is("gives_up") || (is("later") && later))) stop = 1;
    if (result == CUDA_SUCCESS) result = back;
  }
  for (int i = 0; i < kEvents && !stop; ++i) {
    if (one->event[i] == NULL) continue;
    back = cuEventDestroy(one->event[i]);
    if (result == CUDA_SUCCESS) result = back;
  }
  if (one->stream != NULL && !stop) {
    back = cuStreamDestroy(one->stream);
    if (result == CUDA_SUCCESS) result = back;
  }
  return result;
}

static CUresult frame(struct library *one, int number) {
  CUresult result;
  odd = number % 2;
  result = odd ? make_large(&one->scratch) : make_small(&one->scratch);
  if (result != CUDA_SUCCESS) {
    one->scratch = 0;
    return result;
  }
  if ((result = cuMemsetD8Async(one->scratch, 1, 512, one->stream)) != CUDA_SUCCESS) return result;
  if ((result = cuMemcpyDtoDAsync(one->plane[number % kPlanes], one->scratch, 512, one->stream)) != CUDA_SUCCESS) return result;
  if ((result = cuEventRecord(one->event[number % kEvents], one->stream)) != CUDA_SUCCESS) return result;
  if ((result = cuStreamWaitEvent(one->stream, one->event[number % kEvents], 0)) != CUDA_SUCCESS) return result;
  if ((result = cuStreamSynchronize(one->stream)) != CUDA_SUCCESS) return result;
  if ((result = cuMemFree(one->scratch)) != CUDA_SUCCESS) return result;
  one->scratch = 0;
  return CUDA_SUCCESS;
}

int main(int argc, char **argv) {
  struct library one;
  CUcontext context;
  int frames = argc > 2 ? atoi(argv[2]) : 48;
  CUresult result, back;
  if (argc < 2) return 2;
  mode = argv[1];
  memset(&one, 0, sizeof one);
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  result = cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) {
    result = open_library(&one);
    for (int i = 0; i < frames && result == CUDA_SUCCESS; ++i) {
      later = i >= frames / 2;
      result = frame(&one, i);
    }
    back = close_library(&one, result != CUDA_SUCCESS);
    if (result == CUDA_SUCCESS) result = back;
  }
  back = cuDevicePrimaryCtxRelease(0);
  return result != CUDA_SUCCESS || back != CUDA_SUCCESS;
}
