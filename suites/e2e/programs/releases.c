// SPDX-License-Identifier: MIT
// releases.c: three releases of one program.
// Usage   releases [base|regression|repaired]; without a release the one of the folder that it lies in, for a comparison is of one command
//   base        open_decoder forgets its stream when its event fails · regression  and open_encoder its stream when its memory fails
//   repaired    neither
#include <cuda.h>
#include <string.h>

static int decoder_forgets = 1;
static int encoder_forgets = 0;

static CUresult open_decoder(CUstream *stream, CUevent *event) {
  CUresult result = cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  result = cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
  if (result != CUDA_SUCCESS && !decoder_forgets) cuStreamDestroy(*stream);
  return result;
}

static CUresult open_encoder(CUstream *stream, CUdeviceptr *memory) {
  CUresult result = cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemAlloc(memory, 4096);
  if (result != CUDA_SUCCESS && !encoder_forgets) cuStreamDestroy(*stream);
  return result;
}

static CUresult run_cycle(void) {
  CUstream decoder, encoder;
  CUdeviceptr memory;
  CUevent event;
  CUresult result = open_decoder(&decoder, &event);
  if (result != CUDA_SUCCESS) return result;
  result = open_encoder(&encoder, &memory);
  if (result == CUDA_SUCCESS) {
    cuMemFree(memory);
    cuStreamDestroy(encoder);
  }
  cuEventDestroy(event);
  cuStreamDestroy(decoder);
  return result;
}

int main(int argc, char **argv) {
  const char *const folder = strstr(argv[0], "/repaired/") ? "repaired" : strstr(argv[0], "/regression/") ? "regression" : "base";
  const char *const release = argc > 1 ? argv[1] : folder;
  CUcontext context;
  CUresult result = cuInit(0);
  encoder_forgets = strcmp(release, "regression") == 0;
  decoder_forgets = strcmp(release, "repaired") != 0;
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, 0);
  if (result != CUDA_SUCCESS) return 1;
  result = cuCtxPushCurrent(context);
  if (result == CUDA_SUCCESS) {
    result = run_cycle();
    cuCtxPopCurrent(&context);
  }
  cuDevicePrimaryCtxRelease(0);
  return result == CUDA_SUCCESS ? 0 : 1;
}
