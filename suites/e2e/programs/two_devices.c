// SPDX-License-Identifier: MIT
// two_devices.c: the same lifecycle on two devices side by side, and what can be wrong between them.
// Usage   two_devices right|freed_elsewhere|wrong_primary|forgets_other|forgets_other_right|peer|peer_right|both_ways|both_ways_right
//   freed_elsewhere  memory of device 1 is freed where a context of device 0 is current that another thread has destroyed
//   wrong_primary    device 0's primary context is given back twice, device 1's never
//   forgets_other    when the work on one device fails, only that device is closed; with _right both are
//   peer             three marked cycles copy between the devices; where the copy fails, peer access stays enabled; with _right it does not
//   both_ways        each device gets access to the other; when that fails halfway, the first stays enabled; with _right it does not
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cuaudit/mark.h"

typedef struct Side {
  int device;
  CUcontext context;
  CUstream stream;
  CUdeviceptr memory;
} Side;

static CUresult open_side(Side *side, int device) {
  CUresult result;
  side->device = device;
  result = cuDevicePrimaryCtxRetain(&side->context, device);
  if (result != CUDA_SUCCESS) {
    side->context = NULL;
    return result;
  }
  result = cuCtxSetCurrent(side->context);
  if (result == CUDA_SUCCESS && (result = cuStreamCreate(&side->stream, CU_STREAM_NON_BLOCKING)) != CUDA_SUCCESS) side->stream = NULL;
  if (result == CUDA_SUCCESS && (result = cuMemAlloc(&side->memory, 4096)) != CUDA_SUCCESS) side->memory = 0;
  return result;
}

static CUresult work(const Side *side) {
  CUresult result = cuCtxSetCurrent(side->context);
  if (result == CUDA_SUCCESS) result = cuMemsetD8Async(side->memory, 1, 4096, side->stream);
  return result == CUDA_SUCCESS ? cuStreamSynchronize(side->stream) : result;
}

static void close_side(Side *side) {
  if (side->context == NULL) return;
  cuCtxSetCurrent(side->context);
  if (side->memory != 0) cuMemFree(side->memory);
  if (side->stream != NULL) cuStreamDestroy(side->stream);
  cuCtxSetCurrent(NULL);
  cuDevicePrimaryCtxRelease(side->device);
}

static int both(int forgets) {
  Side side[2] = {0};
  CUresult result = open_side(&side[0], 0);
  if (result == CUDA_SUCCESS) result = open_side(&side[1], 1);
  if (result == CUDA_SUCCESS) {
    result = work(&side[0]);
    if (result != CUDA_SUCCESS && forgets) {
      close_side(&side[0]);
      return 1;
    }
  }
  if (result == CUDA_SUCCESS) {
    result = work(&side[1]);
    if (result != CUDA_SUCCESS && forgets) {
      close_side(&side[1]);
      return 1;
    }
  }
  close_side(&side[1]);
  close_side(&side[0]);
  return result == CUDA_SUCCESS ? 0 : 1;
}

static void *destroy_context(void *context) {
  cuCtxDestroy(context);
  return NULL;
}

static void free_elsewhere(const Side *side) {
  CUcontext other;
  pthread_t thread;
  if (cuCtxCreate(&other, NULL, 0, 0) != CUDA_SUCCESS) return;
  if (pthread_create(&thread, NULL, &destroy_context, other) != 0) return;
  pthread_join(thread, NULL);
  cuMemFree(side->memory);
  cuCtxPopCurrent(NULL);
}

static int freed_elsewhere(void) {
  Side side = {0};
  if (open_side(&side, 1) != CUDA_SUCCESS) return 1;
  free_elsewhere(&side);
  side.memory = 0;
  close_side(&side);
  return 0;
}

static int wrong_primary(void) {
  Side side[2] = {0};
  if (open_side(&side[0], 0) != CUDA_SUCCESS || open_side(&side[1], 1) != CUDA_SUCCESS) return 1;
  side[1].device = 0;
  close_side(&side[1]);
  close_side(&side[0]);
  return 0;
}

static CUresult copy_once(const Side *from, const Side *to, int right) {
  CUresult result = cuCtxSetCurrent(from->context);
  CUresult disabled;
  if (result == CUDA_SUCCESS) result = cuCtxEnablePeerAccess(to->context, 0);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemcpyPeer(to->memory, to->context, from->memory, from->context, 4096);
  if (result != CUDA_SUCCESS && !right) return result;
  disabled = cuCtxDisablePeerAccess(to->context);
  return result == CUDA_SUCCESS ? disabled : result;
}

static int copy_between(int right) {
  enum { kCycles = 3 };
  Side side[2] = {0};
  int cycle;
  if (open_side(&side[0], 0) != CUDA_SUCCESS || open_side(&side[1], 1) != CUDA_SUCCESS) return 1;
  for (cycle = 0; cycle < kCycles; ++cycle) {
    cuaudit_cycle_begin();
    cuaudit_report((int)copy_once(&side[0], &side[1], right));
    cuaudit_cycle_end();
  }
  close_side(&side[1]);
  close_side(&side[0]);
  return 0;
}

static CUresult enable_both(const Side side[2], int right) {
  CUresult result = cuCtxSetCurrent(side[0].context);
  if (result == CUDA_SUCCESS) result = cuCtxEnablePeerAccess(side[1].context, 0);
  if (result != CUDA_SUCCESS) return result;
  result = cuCtxSetCurrent(side[1].context);
  if (result == CUDA_SUCCESS) result = cuCtxEnablePeerAccess(side[0].context, 0);
  if (result == CUDA_SUCCESS || !right) return result;
  cuCtxSetCurrent(side[0].context);
  cuCtxDisablePeerAccess(side[1].context);
  return result;
}

static void disable_both(const Side side[2]) {
  int i;
  for (i = 0; i < 2; ++i) {
    cuCtxSetCurrent(side[i].context);
    cuCtxDisablePeerAccess(side[1 - i].context);
  }
}

static int both_ways(int right) {
  Side side[2] = {0};
  CUresult result = open_side(&side[0], 0);
  if (result == CUDA_SUCCESS) result = open_side(&side[1], 1);
  if (result == CUDA_SUCCESS && (result = enable_both(side, right)) == CUDA_SUCCESS) {
    result = work(&side[1]);
    disable_both(side);
  }
  close_side(&side[1]);
  close_side(&side[0]);
  return result == CUDA_SUCCESS ? 0 : 1;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "right";
  int devices = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&devices) != CUDA_SUCCESS) return 1;
  if (devices < 2) {
    printf("%d device\n", devices);
    return 2;
  }
  if (strcmp(mode, "freed_elsewhere") == 0) return freed_elsewhere();
  if (strcmp(mode, "wrong_primary") == 0) return wrong_primary();
  if (strcmp(mode, "peer") == 0 || strcmp(mode, "peer_right") == 0) return copy_between(mode[4] != '\0');
  if (strcmp(mode, "both_ways") == 0 || strcmp(mode, "both_ways_right") == 0) return both_ways(mode[9] != '\0');
  return both(strcmp(mode, "forgets_other") == 0);
}
