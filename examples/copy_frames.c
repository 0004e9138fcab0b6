/* SPDX-License-Identifier: MIT
 * copy_frames.c: uploads N frames, or says why not. Knows nothing of cuaudit. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kFrameBytes = 64 * 1024, kMostFrames = 16 };

static CUresult upload(int frames) {
  static char pixels[kFrameBytes];
  CUdeviceptr frame[kMostFrames];
  int made = 0;
  CUresult code = CUDA_SUCCESS;
  while (code == CUDA_SUCCESS && made < frames) {
    code = cuMemAlloc(&frame[made], kFrameBytes);
    if (code == CUDA_SUCCESS) code = cuMemcpyHtoD(frame[made++], pixels, kFrameBytes);
  }
  while (made > 0) {
    const CUresult freed = cuMemFree(frame[--made]);
    if (code == CUDA_SUCCESS) code = freed;
  }
  return code;
}

int main(int argc, char** argv) {
  const int frames = argc > 1 ? atoi(argv[1]) : 1;
  CUcontext context = NULL;
  CUresult code = frames > 0 && frames <= kMostFrames ? cuInit(0) : CUDA_ERROR_INVALID_VALUE;
  if (code == CUDA_SUCCESS) code = cuDevicePrimaryCtxRetain(&context, 0);
  if (code == CUDA_SUCCESS) {
    code = cuCtxSetCurrent(context);
    if (code == CUDA_SUCCESS) code = upload(frames);
    const CUresult released = cuDevicePrimaryCtxRelease(0);
    if (code == CUDA_SUCCESS) code = released;
  }
  if (code != CUDA_SUCCESS) fprintf(stderr, "copy_frames: CUDA error %d\n", (int)code);
  return code == CUDA_SUCCESS ? 0 : 1;
}
