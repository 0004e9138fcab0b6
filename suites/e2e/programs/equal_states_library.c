// SPDX-License-Identifier: MIT
// equal_states_library.c: an event and a stream; the second time the error path loses the event.
#include <cuda.h>

int work(int careless) {
  CUevent event;
  CUstream stream;
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) return 1;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    if (!careless) cuEventDestroy(event);
    return 1;
  }
  cuStreamDestroy(stream);
  cuEventDestroy(event);
  return 0;
}
