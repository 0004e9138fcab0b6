// SPDX-License-Identifier: MIT
// misuse.c: broken rules that no fault is needed for.
// Usage   misuse double_release|use_after_release|over_released_primary|unbalanced_stack|wrong_order|right_order
//   wrong_order  the state is freed before the close that still uses it: its stream is synchronized after it was destroyed
#include <cuda.h>
#include <string.h>

typedef struct State {
  CUcontext context;
  CUstream stream;
} State;

static void state_free(State *state) { cuStreamDestroy(state->stream); }

static void close_with(const State *state) {
  CUevent last;
  if (cuEventCreate(&last, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
  cuEventRecord(last, state->stream);
  cuStreamSynchronize(state->stream);
  cuEventDestroy(last);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  State state;
  CUdeviceptr memory = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&state.context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(state.context) != CUDA_SUCCESS) return 1;
  if (strcmp(mode, "double_release") == 0) {
    if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) return 1;
    cuMemFree(memory);
    cuMemFree(memory);
  }
  if (strcmp(mode, "use_after_release") == 0) {
    if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) return 1;
    cuMemFree(memory);
    cuMemsetD8(memory, 0, 64);
  }
  if (strcmp(mode, "wrong_order") == 0 || strcmp(mode, "right_order") == 0) {
    if (cuStreamCreate(&state.stream, 0) != CUDA_SUCCESS) return 1;
    if (mode[0] == 'r') close_with(&state);
    state_free(&state);
    if (mode[0] == 'w') close_with(&state);
  }
  if (strcmp(mode, "unbalanced_stack") != 0) cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  if (strcmp(mode, "over_released_primary") == 0) cuDevicePrimaryCtxRelease(0);
  return 0;
}
