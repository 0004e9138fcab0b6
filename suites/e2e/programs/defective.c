// SPDX-License-Identifier: MIT
// defective.c: programs that forget what they have when a later call fails; a definition chooses the program.
//
//   defective      loses a stream and an event, but only when the buffer that comes after them cannot be had
//   releases [base|regression|repaired] (RELEASES)      three releases of one program; without a word the one of the folder that it lies in, for
//                  a comparison is of one command
//     base         open_decoder forgets its stream when its event fails · regression  and open_encoder its stream when its memory fails
//     repaired     neither
//   rebuilt (REBUILT)      three functions that each lose something. Built as it is and, with CHANGED, as the next release of the same program:
//                  other lines, another order of functions, more calls before the losses. The losses stay the same
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#if defined(RELEASES)

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

#elif defined(REBUILT)

#ifdef CHANGED
static int measure(void) {
  size_t unused = 0, total = 0;
  int count = 0;
  return cuMemGetInfo(&unused, &total) != CUDA_SUCCESS || cuDeviceGetCount(&count) != CUDA_SUCCESS;
}
#define MORE_CALLS \
  if (measure()) return 1
#else
#define MORE_CALLS
#endif

static int load(void);

static int open_streams(void) {
  CUstream work = NULL, copy = NULL;
  MORE_CALLS;
  if (cuStreamCreate(&work, CU_STREAM_DEFAULT) != CUDA_SUCCESS) return 1;
  if (cuStreamCreate(&copy, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 1; /* loses `work` */
  cuStreamDestroy(copy);
  cuStreamDestroy(work);
  return 0;
}

#ifndef CHANGED
static int load(void) {
  CUdeviceptr memory = 0;
  CUevent loaded = NULL;
  if (cuMemAlloc(&memory, 4096) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&loaded, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return 1; /* loses `memory` */
  cuEventDestroy(loaded);
  cuMemFree(memory);
  return 0;
}
#endif

static int use_device(CUdevice device) {
  CUcontext context = NULL;
  MORE_CALLS;
  if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return 1;
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS) return 1; /* loses the reference */
  const int failed = open_streams() || load();
  cuDevicePrimaryCtxRelease(device);
  return failed;
}

#ifdef CHANGED
static int load(void) {
  CUdeviceptr memory = 0;
  CUevent loaded = NULL;
  MORE_CALLS;
  if (cuMemAlloc(&memory, 8192) != CUDA_SUCCESS) return 1;
  MORE_CALLS; /* loses `memory`, too */
  if (cuEventCreate(&loaded, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return 1;
  cuEventDestroy(loaded);
  cuMemFree(memory);
  return 0;
}
#endif

int main(void) {
  CUdevice device = 0;
  CUcontext outer = NULL;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxCreate(&outer, NULL, 0, device) != CUDA_SUCCESS) return 1;
  const int failed = use_device(device);
  cuCtxDestroy(outer);
  return failed;
}

#else

typedef struct Work {
  CUstream stream;
  CUevent event;
  CUdeviceptr buffer;
} Work;

static int make_both(Work *work) {
  if (cuStreamCreate(&work->stream, 0) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&work->event, 0) == CUDA_SUCCESS) return 0;
  cuStreamDestroy(work->stream);
  return 1;
}

static int make_buffer(Work *work) { return cuMemAlloc(&work->buffer, 4096) != CUDA_SUCCESS; }

int main(void) {
  CUcontext context;
  Work work;
  int status;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  if (cuCtxPushCurrent(context) != CUDA_SUCCESS) {
    cuDevicePrimaryCtxRelease(0);
    return 1;
  }
  status = make_both(&work);
  if (status == 0) {
    status = make_buffer(&work);
    if (status == 0) {
      cuMemFree(work.buffer);
      cuEventDestroy(work.event);
      cuStreamDestroy(work.stream);
    }
  }
  cuCtxPopCurrent(NULL);
  cuDevicePrimaryCtxRelease(0);
  fprintf(stderr, "defective: status %d\n", status);
  return status;
}

#endif
