// SPDX-License-Identifier: MIT
// host_oom.c: three host allocations between driver calls; what one of them loses when it fails.
// Usage   host_oom repaired|pinned|block|crashes
//   pinned   the pinned buffer stays when the block that describes it cannot be had
//   block    a block that cannot grow is lost
//   crashes  writes through the null
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

typedef struct Buffer {
  void *pinned;
  char *name;
} Buffer;

static const char *mode;

static int open_buffer(Buffer **out) {
  Buffer *buffer;
  void *pinned = NULL;
  if (cuMemHostAlloc(&pinned, 4096, 0) != CUDA_SUCCESS) return 1;
  buffer = calloc(1, sizeof(*buffer));
  if (buffer == NULL && strcmp(mode, "crashes") != 0) {
    if (strcmp(mode, "pinned") != 0) cuMemFreeHost(pinned);
    return 1;
  }
  *(void *volatile *)&buffer->pinned = pinned;
  *out = buffer;
  return 0;
}

static void close_buffer(Buffer *buffer) {
  if (buffer == NULL) return;
  free(buffer->name);
  cuMemFreeHost(buffer->pinned);
  free(buffer);
}

int main(int argc, char **argv) {
  CUcontext context;
  Buffer *buffer = NULL;
  char *volatile scratch;
  char *volatile larger;
  int status = 0;
  mode = argc > 1 ? argv[1] : "repaired";
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 9;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) return 9;
  scratch = malloc(64);
  if (scratch == NULL) status = 1;
  if (status == 0) status = open_buffer(&buffer);
  if (status == 0) {
    buffer->name = strdup("a name");  // the C library allocates: not made to fail
    larger = realloc(scratch, 6000);
    if (larger == NULL) status = 2;
    if (larger != NULL || strcmp(mode, "block") == 0) scratch = larger;
  }
  close_buffer(buffer);
  free(scratch);
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  return status;
}
